// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// secret is a Secret that a field of a spec names. Only the store may see its values.
type secret struct {
	name, field string
	data        map[string][]byte
}

func (o opener) secret(ctx context.Context, field, name string) (secret, error) {
	s := secret{name: name, field: field}
	if name == "" {
		return s, fmt.Errorf("%w: %s is not set: name the Secret with the credentials of the store", ErrSpec, field)
	}
	found, err := o.secrets.Get(ctx, o.namespace, name)
	switch {
	case err == nil:
		s.data = found.Data
		return s, nil
	case apierrors.IsNotFound(err):
		return s, s.wrong("does not exist: create it in the namespace %s", o.namespace)
	case apierrors.IsForbidden(err):
		return s, s.wrong("can't be read by the operator: grant its service account to get Secrets in the namespace %s: %s", o.namespace, notice.ApplyRoles)
	default:
		return s, fmt.Errorf("read Secret %s (%s): %w", name, field, err)
	}
}

func (s secret) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: Secret %s (%s) %s", ErrSecret, s.name, s.field, fmt.Sprintf(format, args...))
}

// text returns the value of a key, without the newline that editors and echo append.
func (s secret) text(key string) string { return strings.TrimSpace(string(s.data[key])) }

// needs checks that all of the keys have a value.
func (s secret) needs(keys ...string) error {
	absent := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return s.text(key) != "" })
	if len(absent) == 0 {
		return nil
	}
	return s.wrong("lacks %s: it has %s; add what is missing", strings.Join(absent, " and "), s.keys())
}

// needsOneOf checks that at least one of the keys has a value.
func (s secret) needsOneOf(keys ...string) error {
	if slices.ContainsFunc(keys, func(key string) bool { return s.text(key) != "" }) {
		return nil
	}
	return s.wrong("lacks %s: it has %s; add what is missing", strings.Join(keys, " or "), s.keys())
}

// keys lists the Secret's keys for an error, at most a few of them. It marks keys without a
// value.
func (s secret) keys() string {
	const told = 10
	var names []string
	for _, key := range slices.Sorted(maps.Keys(s.data)) {
		if s.text(key) == "" {
			key += " (empty)"
		}
		names = append(names, key)
	}
	switch n := len(names); {
	case n == 0:
		return "nothing"
	case n > told:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:told], ", "), n-told)
	default:
		return strings.Join(names, ", ")
	}
}
