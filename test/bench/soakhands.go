// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// soakLabel is the key of the labels that the churn puts on children.
const soakLabel = "bench.freehold.dev/soak"

// childKey names a child.
type childKey struct{ resource, name string }

// foreignLabel is the last one that was put on a child.
type foreignLabel struct {
	uid   types.UID
	value string
}

func (c *churn) noteLabel(of childKey, label foreignLabel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.labels[of] = label
}

// dropLabel notes that a child is about to be deleted by hand: the next one has no label.
func (c *churn) dropLabel(of childKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.labels, of)
}

// lost describes what was done by hand and is to last, but is not there any more, the first of it: labels, and numbers of proxies.
func (c *churn) lost(ctx context.Context) (found []string, err error) {
	list, err := c.site.core.AppsV1().Deployments(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	replicas := map[string]int32{}
	for i := range list.Items {
		if number := list.Items[i].Spec.Replicas; number != nil {
			replicas[list.Items[i].Name] = *number
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.uids {
		want := int32(1)
		if c.scaled[name] {
			want = 2
		}
		if has := replicas[name]; has != want {
			found = append(found, fmt.Sprintf("the Deployment of %s has %d replicas, want %d", name, has, want))
		}
	}
	for of, label := range c.labels {
		if why := c.observer.unlabelled(c.namespace, of, label); why != "" {
			found = append(found, fmt.Sprintf("%s %s %s", of.resource, of.name, why))
		}
	}
	slices.Sort(found)
	return found[:min(len(found), shownViolations)], nil
}

// unlabelled describes why a child has not the label that it should have; "" if it has. A ConfigMap of an earlier spec goes with its label.
func (o *observer) unlabelled(namespace string, of childKey, label foreignLabel) string {
	obj, exists, err := o.children[of.resource].GetStore().GetByKey(namespace + "/" + of.name)
	child, ok := obj.(metav1.Object)
	replaced := err != nil || !exists || !ok || child.GetUID() != label.uid
	switch {
	case replaced && of.resource == "configmaps":
		return ""
	case replaced:
		return "is not the one that has a label"
	case child.GetLabels()[soakLabel] != label.value:
		return fmt.Sprintf("has the label %q, want %q", child.GetLabels()[soakLabel], label.value)
	}
	return ""
}

// undoHands takes back what still differs by hand: images and numbers of proxies.
func (c *churn) undoHands(ctx context.Context) error {
	contested := c.undo(c.contested, editImage)
	err := each(ctx, len(contested), func(ctx context.Context, i int) error {
		if !c.waits.reserve(contested[i]) {
			return nil
		}
		return c.toggleImage(ctx, contested[i])
	})
	if err != nil {
		return err
	}
	scaled := c.undo(c.scaled, scaleProxy)
	return each(ctx, len(scaled), func(ctx context.Context, i int) error { return c.toggleScale(ctx, scaled[i]) })
}

// undo returns the MCPServers that are contested, or scaled, and counts the writes that taking that back may cause.
func (c *churn) undo(which map[string]bool, by operation) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, is := range which {
		if is {
			names = append(names, name)
			c.due[name] += writesDue(by)
		}
	}
	return names
}
