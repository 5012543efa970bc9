// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// idle watches the operator while nothing happens.
func (o *subject) idle(ctx context.Context, window time.Duration) (stage, error) {
	done, err := o.observe(ctx, func(ctx context.Context) error { return pass(ctx, window) })
	done.Took = window
	return done, err
}

// pass returns when the time has passed.
func pass(ctx context.Context, window time.Duration) error {
	timer := time.NewTimer(window)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// label puts a label on each Deployment, as another client would, and watches what the operator makes of it. It returns how many
// of the labels stay.
func (o *subject) label(ctx context.Context, p places) (done stage, left int, err error) {
	const key = "bench.freehold.dev/foreign"
	deployments := o.site.core.AppsV1().Deployments
	done, err = o.observe(ctx, func(ctx context.Context) error {
		// Every label is an event of its own Deployment, so each MCPServer is looked at once more.
		return o.settled(ctx, p.servers, func(ctx context.Context) error {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"here"}}}`, key)
			err := each(ctx, p.servers, func(ctx context.Context, i int) error {
				_, err := deployments(p.namespaceOf(i)).Patch(ctx, serverName(i), types.MergePatchType, patch,
					metav1.PatchOptions{FieldManager: "bench-foreign"})
				return err
			})
			if err != nil {
				return fmt.Errorf("cannot label the Deployments: %w", err)
			}
			return nil
		})
	})
	if err != nil {
		return done, 0, err
	}
	labelled, err := deployments(p.watched()).List(ctx, metav1.ListOptions{LabelSelector: key + "=here"})
	if err != nil {
		return done, 0, err
	}
	return done, len(labelled.Items), nil
}

// outage is what the operator did while no StatefulSet could be made.
type outage struct {
	// Minutes are its requests of each minute from the deletion of the StatefulSets on.
	Minutes []tally
	// Use over the whole time.
	Use use
}

// outage forbids StatefulSets by a quota, as an administrator would, and deletes all there are. Of all reasons why
// one cannot be made this is the one that costs most: a quota changes without a word, so it has to be tried again.
func (o *freehold) outage(ctx context.Context, namespace string, n int, window time.Duration) (done outage, err error) {
	const name = "no-statefulsets"
	hard := corev1.ResourceList{"count/statefulsets.apps": resource.MustParse("0")}
	quotas := o.site.core.CoreV1().ResourceQuotas(namespace)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return done, err
	}
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		counted, err := quotas.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		used := counted.Status.Used["count/statefulsets.apps"]
		return used.Value() == int64(n), nil
	})
	if err != nil {
		return done, fmt.Errorf("the quota does not count %d StatefulSets: %w", n, err)
	}
	meter, err := newMeter(o.process.PID())
	if err != nil {
		return done, err
	}
	sets := o.site.core.AppsV1().StatefulSets(namespace)
	mark, err := o.site.cluster.AuditMark(ctx)
	if err != nil {
		return done, err
	}
	end := time.Now()
	background := metav1.DeletePropagationBackground
	err = sets.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	if err != nil {
		return done, fmt.Errorf("cannot delete the StatefulSets: %w", err)
	}
	for range int(window / time.Minute) {
		end = end.Add(time.Minute)
		if err := pass(ctx, time.Until(end)); err != nil {
			return done, err
		}
		var minute tally
		if minute, mark, err = o.requests(ctx, mark); err != nil {
			return done, err
		}
		done.Minutes = append(done.Minutes, minute)
	}
	if done.Use, err = meter.read(); err != nil {
		return done, err
	}
	left, err := sets.List(ctx, metav1.ListOptions{})
	if err == nil && len(left.Items) > 0 {
		err = errors.New("there are StatefulSets although none can be made")
	}
	return done, err
}
