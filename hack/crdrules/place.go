// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// placed are changes to one place of the schema: a path such as "spec.pod.tolerations[].key",
// where [] means the items of a list and {} the values of a map.
type placed struct {
	at      string
	changes []change
}

type change func(*apiextensionsv1.JSONSchemaProps)

func at(path string, changes ...change) placed { return placed{path, changes} }

var errNoSuchPlace = errors.New("the schema has no such place: did the types change?")

func edit(s *apiextensionsv1.JSONSchemaProps, path string, changes []change) error {
	path = strings.TrimPrefix(path, ".")
	switch {
	case path == "":
		for _, c := range changes {
			c(s)
		}
		return nil
	case strings.HasPrefix(path, "[]"):
		if s.Items == nil || s.Items.Schema == nil {
			return errNoSuchPlace
		}
		return edit(s.Items.Schema, path[2:], changes)
	case strings.HasPrefix(path, "{}"):
		if s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil {
			return errNoSuchPlace
		}
		return edit(s.AdditionalProperties.Schema, path[2:], changes)
	}
	name, rest := path, ""
	if i := strings.IndexAny(path, ".[{"); i >= 0 {
		name, rest = path[:i], path[i:]
	}
	child, ok := s.Properties[name]
	if !ok {
		return fmt.Errorf("%q: %w", name, errNoSuchPlace)
	}
	if err := edit(&child, rest, changes); err != nil {
		return err
	}
	s.Properties[name] = child
	return nil
}

// must adds a CEL rule and its message.
func must(rule, message string) change {
	return func(s *apiextensionsv1.JSONSchemaProps) {
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: rule, Message: message})
	}
}

// mustAt is must for a rule about one field of the place. The error names the field's path.
func mustAt(field, rule, message string) change {
	return func(s *apiextensionsv1.JSONSchemaProps) {
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: rule, Message: message, FieldPath: field})
	}
}

// mustSaying is mustAt with a message from a CEL expression, and a fallback for an expression
// that fails.
func mustSaying(field, rule, expression, message string) change {
	return func(s *apiextensionsv1.JSONSchemaProps) {
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{
			Rule: rule, MessageExpression: expression, Message: message, FieldPath: field,
		})
	}
}

func pattern(p string) change {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.Pattern = p }
}

func maxLength(n int64) change {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.MaxLength = &n }
}

func minItems(n int64) change {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.MinItems = &n }
}

func maxItems(n int64) change {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.MaxItems = &n }
}

func maxProperties(n int64) change {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.MaxProperties = &n }
}

func between(least, most float64) change {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.Minimum, s.Maximum = &least, &most }
}

func required(fields ...string) change {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.Required = append(s.Required, fields...) }
}

func noDefault(s *apiextensionsv1.JSONSchemaProps) { s.Default = nil }

func describe(text string) change {
	return func(s *apiextensionsv1.JSONSchemaProps) { s.Description = text }
}

func oneOf(values ...string) change {
	return func(s *apiextensionsv1.JSONSchemaProps) {
		for _, v := range values {
			text, _ := json.Marshal(v) // of a string: it does not fail
			s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: text})
		}
	}
}

// without forbids a field of Kubernetes' type that has no use here.
func without(field, reason string) change {
	return func(s *apiextensionsv1.JSONSchemaProps) {
		mustAt("."+field, "!has(self."+field+")", field+" can't be used: "+reason)(s)
		child := s.Properties[field]
		child.Description = "Not used here: " + reason + "."
		s.Properties[field] = child
	}
}

// quote returns a string literal of CEL.
func quote(s string) string {
	text, _ := json.Marshal(s) // of a string: it does not fail
	return string(text)
}
