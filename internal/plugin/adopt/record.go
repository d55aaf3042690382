// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// RecordName is the ConfigMap that holds what the move replaces. An interrupted move and the way
// back begin with it.
const RecordName = "etcd-operator-adoption"

const (
	recordObjects  = "objects.json.gz" // compressed, because a ConfigMap holds 1 MiB and a CRD can have half of it
	recordImage    = "image"
	recordAnyScope = "anyScope"
)

// readRecord reads the record into m, and returns the objects as they were before the move; nil
// if there is no record.
func (m *Move) readRecord(ctx context.Context) ([]*unstructured.Unstructured, error) {
	object, err := m.get(ctx, configMaps, RecordName)
	if object == nil || err != nil {
		return nil, err
	}
	before, err := m.decodeRecord(object)
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMap %s/%s, which holds the old Deployments: %w", m.Namespace, RecordName, err)
	}
	return before, nil
}

func (m *Move) decodeRecord(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var record struct {
		Data       map[string]string
		BinaryData map[string][]byte
	}
	content, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &record); err != nil {
		return nil, err
	}
	packed, err := gzip.NewReader(bytes.NewReader(record.BinaryData[recordObjects]))
	if err != nil {
		return nil, err
	}
	list, err := io.ReadAll(packed)
	if err != nil {
		return nil, err
	}
	var documents []json.RawMessage
	if err := json.Unmarshal(list, &documents); err != nil {
		return nil, err
	}
	if len(documents) == 0 {
		return nil, errors.New("it holds no objects")
	}
	m.Image = record.Data[recordImage]
	if m.AnyScope, err = strconv.ParseBool(record.Data[recordAnyScope]); err != nil {
		return nil, err
	}
	before := make([]*unstructured.Unstructured, 0, len(documents))
	for _, document := range documents {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(document); err != nil {
			return nil, err
		}
		before = append(before, o)
	}
	return before, nil
}

// record returns the ConfigMap.
func (m *Move) record(before []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	maps := make([]map[string]any, 0, len(before))
	for _, o := range before {
		maps = append(maps, o.Object)
	}
	list, err := json.Marshal(maps)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(list); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata":   map[string]any{"name": RecordName, "namespace": m.Namespace},
		"data":       map[string]any{recordImage: m.Image, recordAnyScope: strconv.FormatBool(m.AnyScope)},
		"binaryData": map[string]any{recordObjects: base64.StdEncoding.EncodeToString(packed.Bytes())},
	}}, nil
}

// writeRecord creates the ConfigMap. One that is there already is of a move that has begun
// meanwhile.
func (m *Move) writeRecord(ctx context.Context, before []*unstructured.Unstructured, dryRun []string) error {
	object, err := m.record(before)
	if err != nil {
		return err
	}
	_, err = m.of(configMaps).Create(ctx, object, metav1.CreateOptions{DryRun: dryRun})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the ConfigMap %s/%s exists: another move has begun; run the command again to continue it", m.Namespace, RecordName)
	}
	if err != nil {
		return fmt.Errorf("record the old objects in the ConfigMap %s/%s: %w", m.Namespace, RecordName, err)
	}
	return nil
}

// clean removes what the API server adds to an object, and what it does not accept again.
func clean(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	if loose, _, _ := unstructured.NestedBool(object.Object, "spec", "preserveUnknownFields"); loose {
		openSchema(object)
	}
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	return object
}

func toUnstructured(object any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: content}, err
}

// openSchema gives a CRD that v0.9.4 created, without a schema, one that means the same. The API
// server accepts spec.preserveUnknownFields only where it is set already.
func openSchema(crd *unstructured.Unstructured) {
	unstructured.RemoveNestedField(crd.Object, "spec", "preserveUnknownFields")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		if version, ok := version.(map[string]any); ok {
			version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
		}
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}
