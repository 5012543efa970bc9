// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Some answers of the API server differ in their text alone. This is the one place that knows such texts; a suite on a
// real API server fails when they change.

// unstorables are how answers begin that mean that a body can never be stored, by anybody and at any time.
var unstorables = []string{
	// The body does not fit the schema: a list with one key twice, a field that the schema does not have, a value of another
	// type. The code is 500 and the reason empty, as it is when etcd does not answer.
	"failed to create typed patch object (",
	// The body is larger than any that the API server reads.
	"Request entity too large: limit is ",
}

// unstorable reports whether a body can never be stored.
func unstorable(status metav1.Status) bool {
	return slices.ContainsFunc(unstorables, func(text string) bool { return strings.HasPrefix(status.Message, text) })
}

const (
	// webhookDenies is how the answer begins when an admission webhook denies a request. The name of the webhook follows.
	webhookDenies = `admission webhook "`
	// webhookFails is what the answer has before the name of an admission webhook that could not be called.
	webhookFails = `failed calling webhook "`
)

// FailedWebhook returns the name of the admission webhook that the API server could not call; "" when that is not what a write was
// refused for.
func FailedWebhook(refusal error) string {
	var answer apierrors.APIStatus
	if !errors.As(refusal, &answer) {
		return ""
	}
	_, after, _ := strings.Cut(answer.Status().Message, webhookFails)
	name, _, _ := strings.Cut(after, `"`)
	return name
}

// manyBudgets is how the API server refuses to evict a pod that several PodDisruptionBudgets select. The code is 500 and
// the reason empty.
const manyBudgets = "This pod has more than one PodDisruptionBudget"

// BudgetInTheWay reports whether PodDisruptionBudgets keep a pod from being evicted, and returns the detail: the budget
// allows no disruption now, or more than one budget selects the pod.
func BudgetInTheWay(refusal error) (detail string, inTheWay bool) {
	if cause, ok := apierrors.StatusCause(refusal, policyv1.DisruptionBudgetCause); ok {
		return cause.Message, true
	}
	var answer apierrors.APIStatus
	if errors.As(refusal, &answer) && strings.HasPrefix(answer.Status().Message, manyBudgets) {
		return "more than one PodDisruptionBudget selects the pod, and the API server evicts no such pod; keep one of them", true
	}
	return "", false
}
