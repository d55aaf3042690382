// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readinesstest judges objects as tools do that wait for them: by kstatus.
package readinesstest

import (
	"encoding/json"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// kstatus is what each condition must mean to kstatus.
var kstatus = map[string]status.Status{
	api.ConditionReady:       status.CurrentStatus,
	api.ConditionReconciling: status.InProgressStatus,
	api.ConditionStalled:     status.FailedStatus,
}

// camelCase is what the API conventions of Kubernetes ask of a reason.
var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Judge returns the condition that is True of Ready, Reconciling and Stalled, with its
// reason. The error says which rule of conditions the object breaks, or that kstatus judges
// it otherwise.
func Judge(obj any) (condition, reason string, err error) {
	u, err := untyped(obj)
	if err != nil {
		return "", "", err
	}
	conditions, err := conditionsOf(u)
	if err != nil {
		return "", "", err
	}
	for t := range kstatus {
		c, ok := conditions[t]
		switch {
		case !ok:
			return "", "", fmt.Errorf("there is no condition %s", t)
		case !camelCase.MatchString(c.Reason):
			return "", "", fmt.Errorf("the reason %q of %s is not in CamelCase", c.Reason, t)
		case c.Status == metav1.ConditionTrue && condition != "":
			return "", "", fmt.Errorf("%s and %s are True", condition, t)
		case c.Status == metav1.ConditionTrue && c.Message == "":
			return "", "", fmt.Errorf("%s is True without a message", t)
		case c.Status == metav1.ConditionTrue:
			condition, reason = t, c.Reason
		case c.Status != metav1.ConditionFalse:
			return "", "", fmt.Errorf("%s is %s", t, c.Status)
		}
	}
	if condition == "" {
		return "", "", fmt.Errorf("no condition is True: %v", conditions)
	}
	result, err := status.Compute(u)
	if err != nil {
		return "", "", err
	}
	if result.Status != kstatus[condition] {
		return "", "", fmt.Errorf("%s is True, and kstatus says %s: %s", condition, result.Status, result.Message)
	}
	return condition, reason, nil
}

// Kstatus returns what kstatus says of an object.
func Kstatus(obj any) (string, error) {
	u, err := untyped(obj)
	if err != nil {
		return "", err
	}
	result, err := status.Compute(u)
	if err != nil {
		return "", err
	}
	return string(result.Status), nil
}

// untyped converts an object to the form in which the API server returns it.
func untyped(obj any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	content := map[string]any{"apiVersion": api.SchemeGroupVersion.String(), "kind": "Tested"}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(content); err != nil {
		return nil, err
	}
	return u, u.UnmarshalJSON(text) // which keeps integers
}

func conditionsOf(u *unstructured.Unstructured) (map[string]metav1.Condition, error) {
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return nil, err
	}
	conditions := map[string]metav1.Condition{}
	for _, entry := range list {
		text, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		var c metav1.Condition
		if err := json.Unmarshal(text, &c); err != nil {
			return nil, err
		}
		conditions[c.Type] = c
	}
	return conditions, nil
}
