// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// inFull names the kind of a step, and all of its fields that are not zero. An object
// is identified by its UID and resourceVersion, a list by the names in it, a manifest by its
// spec. A step that is nil is "".
func inFull(t *testing.T, s step) string {
	t.Helper()
	if s == nil {
		return ""
	}
	v := reflect.New(reflect.TypeOf(s)).Elem()
	v.Set(reflect.ValueOf(s))
	words := []string{v.Type().Name()}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		field := accessible(v.Field(i))
		if field.IsZero() {
			continue
		}
		switch value := field.Interface().(type) {
		case bool:
			words = append(words, name)
		case string:
			words = append(words, fmt.Sprintf("%s=%q", name, value))
		case int64:
			words = append(words, fmt.Sprintf("%s=%d", name, value))
		case types.UID:
			words = append(words, fmt.Sprintf("%s=%s", name, value))
		case *unstructured.Unstructured:
			words = append(words, fmt.Sprintf("%s=%s/%s", name, value.GetUID(), value.GetResourceVersion()))
		case []corev1.Pod:
			words = append(words, name+"="+namesIn(value, func(p *corev1.Pod) metav1.Object { return p }))
		case []corev1.Service:
			words = append(words, name+"="+namesIn(value, func(s *corev1.Service) metav1.Object { return s }))
		case []corev1.PersistentVolumeClaim:
			words = append(words, name+"="+namesIn(value, func(v *corev1.PersistentVolumeClaim) metav1.Object { return v }))
		case manifest:
			words = append(words, name+"="+specIn(t, value))
		case api.SeedBackup:
			words = append(words, fmt.Sprintf("%s=%s/%s/%d/%s/%s/%s", name, value.RestoreUID, strings.TrimLeft(value.SHA256, "0"), value.Size, value.URL, value.Secret, value.Key))
		default:
			t.Errorf("%s.%s: inFull does not know how to show a %s", v.Type().Name(), name, field.Type())
		}
	}
	return strings.Join(words, " ")
}

// accessible is a field that may be read and set though it is not exported.
func accessible(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

func namesIn[T any](list []T, object func(*T) metav1.Object) string {
	var names []string
	for i := range list {
		names = append(names, object(&list[i]).GetName())
	}
	return "[" + strings.Join(names, " ") + "]"
}

// specIn is the spec of a manifest.
func specIn(t *testing.T, m manifest) string {
	t.Helper()
	var parts struct{ Spec json.RawMessage }
	if err := json.Unmarshal([]byte(m), &parts); err != nil {
		t.Errorf("%s: %v", m, err)
	}
	return string(parts.Spec)
}
