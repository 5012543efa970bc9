// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	_ "github.com/freehold-dev/freehold/apis/toolhive/v9" // want depguard:metricsserver
)

// Ask asks who somebody is and what he may do. Nothing but these two may be created.
func Ask(ctx context.Context, c kubernetes.Interface) {
	_, _ = c.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{}, metav1.CreateOptions{})
	_, _ = c.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})

	_, _ = c.CoreV1().Secrets("").Create(ctx, &corev1.Secret{}, metav1.CreateOptions{}) // want never-write
	_, _ = c.CoreV1().Secrets("").Get(ctx, "", metav1.GetOptions{})                     // want read
}
