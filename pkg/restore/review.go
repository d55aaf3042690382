// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rights asks the API server whether this operator may do all that the rest of the
// restore takes: a right that is missing would show when the old cluster is gone. Every
// authenticated user may ask that of himself (system:basic-user). The rules of RBAC
// come in one answer; where an authorizer has none to report, such as a webhook's, what
// seems to be missing is asked for one by one.
func (a *attempt) rights(ctx context.Context) error {
	spec, err := a.manifest.spec()
	if err != nil {
		return err
	}
	persistent := spec.Pod != nil && spec.Pod.PersistentVolumeClaimSpec != nil
	reviews := a.cfg.Kube.AuthorizationV1()
	rules, err := reviews.SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: a.obj.Namespace}}, metav1.CreateOptions{})
	if err != nil {
		return a.unanswered(err)
	}
	var missing []right
	for _, r := range ungranted(needed(a.obj, persistent), rules.Status.ResourceRules) {
		answer, err := reviews.SelfSubjectAccessReviews().Create(ctx, r.review(a.obj.Namespace), metav1.CreateOptions{})
		switch {
		case err != nil:
			return a.unanswered(err)
		case !answer.Status.Allowed:
			missing = append(missing, r)
		}
	}
	if len(missing) > 0 {
		return errUngranted(a.obj.Namespace, missing)
	}
	return nil
}

// review asks for one right.
func (r right) review(namespace string) *authorizationv1.SelfSubjectAccessReview {
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Name: r.name,
		},
	}}
}

// unanswered: where nobody may ask, or nobody can answer, the restore continues as if it
// had the rights.
func (a *attempt) unanswered(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		a.log.WithError(err).Warn("the API server does not report which rights this operator has; continuing")
		return nil
	}
	return fmt.Errorf("ask the API server which rights the restore operator has: %w", err)
}
