// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Delay registers a webhook that answers the writes of Freehold's field managers of all kinds in a namespace after so long, and returns when
// the API server asks it. The caller calls remove without an error: what waits is answered then, and nothing is delayed any more.
func Delay(ctx context.Context, core kubernetes.Interface, namespace string, takes time.Duration) (remove func(context.Context) error, err error) {
	var asked atomic.Bool
	over := make(chan struct{})
	_, unregister, err := Serve(ctx, core, namespace, "slow.example.com", admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
	}, func(request *admissionv1.AdmissionRequest) *metav1.Status {
		asked.Store(true)
		if strings.Contains(string(request.Options.Raw), `"fieldManager":"freehold-`) {
			select {
			case <-time.After(takes):
			case <-over:
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	remove = func(ctx context.Context) error {
		close(over)
		return unregister(ctx)
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, last = core.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "asks"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last == nil && asked.Load(), nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the API server does not ask the webhook: %w", err), last, remove(context.WithoutCancel(ctx)))
	}
	return remove, nil
}
