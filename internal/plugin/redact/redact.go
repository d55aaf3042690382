// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact takes out of objects and logs what a person must not send to others:
// credentials, and keys and values of etcd.
package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Mark takes the place of what is left out.
const Mark = "REDACTED"

// keptAnnotations begin the annotations whose values are Kubernetes' or the operator's own.
var keptAnnotations = []string{"etcd.database.coreos.com/", "etcd.version", "cni.projectcalico.org/", "volume.kubernetes.io/", "pv.kubernetes.io/"}

// keptEnv are variables of etcd whose values are settings.
var keptEnv = regexp.MustCompile(`^ETCD_[A-Z0-9_]+$`)

// secretName is a name of what is likely to be secret.
var secretName = regexp.MustCompile(`(?i)passw|secret|token|credential|private|api[_-]?key|access[_-]?key|auth`)

// Object changes an object, as JSON is read into, and everything in it.
func Object(object map[string]any) {
	if kind, _ := object["kind"].(string); kind == "Secret" || kind == "ConfigMap" {
		for _, field := range []string{"data", "stringData", "binaryData"} {
			delete(object, field)
		}
	}
	value(object)
}

func value(v any) {
	switch v := v.(type) {
	case map[string]any:
		fields(v)
	case []any:
		for i, item := range v {
			if text, ok := item.(string); ok {
				v[i] = Text(text)
				continue
			}
			value(item)
		}
	}
}

func fields(object map[string]any) {
	delete(object, "managedFields")
	for name, v := range object {
		text, isText := v.(string)
		switch {
		case name == "annotations":
			annotations(v)
		case name == "env" || name == "etcdEnv":
			environment(v)
		case name == "labels" || name == "nodeSelector" || name == "matchLabels":
		case isText:
			object[name] = Text(text)
		default:
			value(v)
		}
	}
}

// annotations keeps the names: which tools have been at the object may matter.
func annotations(v any) {
	list, _ := v.(map[string]any)
	for name, content := range list {
		kept := slices.ContainsFunc(keptAnnotations, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		text, isText := content.(string)
		if !kept || !isText {
			list[name] = Mark
			continue
		}
		list[name] = Text(text)
	}
}

// environment keeps the settings of etcd, and where values come from.
func environment(v any) {
	list, _ := v.([]any)
	for _, item := range list {
		variable, ok := item.(map[string]any)
		if !ok {
			continue
		}
		name, _ := variable["name"].(string)
		content, given := variable["value"].(string)
		switch {
		case !given || content == "":
		case !keptEnv.MatchString(name) || secretName.MatchString(name):
			variable["value"] = Mark
		default:
			variable["value"] = Text(content)
		}
	}
}

var patterns = []struct {
	find *regexp.Regexp
	put  string
}{
	// Blocks of PEM, also in one line with escaped ends of lines.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`), Mark},
	// User and password in a URL.
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"']+@`), "${1}" + Mark + "@"},
	// Tokens of HTTP, and web tokens.
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/._~=-]{8,}`), "${1} " + Mark},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), Mark},
	// Requests and traces in logs of etcd: their fields hold keys without any quotes.
	{regexp.MustCompile(`"(request|detail)"\s*:\s*"(?:[^"\\]|\\.)*"`), `"${1}":"` + Mark + `"`},
	// Keys, ranges and values in what etcd logs of requests: key:\"…\" and key:"…".
	{regexp.MustCompile(`\b(key|range_end|value|prev_value|name|password|hashed_password|user|role)\s*:\s*\\"(?:[^"\\]|\\\\.|\\[^"\\])*\\"`), `${1}:\"` + Mark + `\"`},
	{regexp.MustCompile(`\b(key|range_end|value|prev_value|password|hashed_password)\s*:\s*"(?:[^"\\]|\\.)*"`), `${1}:"` + Mark + `"`},
	{regexp.MustCompile(`"(key|range-begin|range-end|range_begin|range_end|value|user|user-name|password|token)"\s*:\s*"(?:[^"\\]|\\.)*"`), `"${1}":"` + Mark + `"`},
	// Settings such as password=…, --auth-token=….
	{regexp.MustCompile(`(?i)\b([a-z0-9_.-]*(?:passw(?:or)?d|secret|token|credential|api[_-]?key|access[_-]?key)[a-z0-9_.-]*)\s*=\s*("[^"]*"|'[^']*'|[^\s;"'&]+)`), "${1}=" + Mark},
}

// Text returns a text without what looks secret.
func Text(text string) string {
	for _, p := range patterns {
		text = p.find.ReplaceAllString(text, p.put)
	}
	return text
}
