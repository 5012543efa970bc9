// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

// finalize takes care of an MCPServer that is being deleted. The garbage collector deletes the children that
// refer to it; ours to delete are those that lost their reference, unless all were asked to stay behind. Then
// the finalizer is given up.
func (p *pass) finalize(ctx context.Context) {
	if !slices.Contains(p.server.Finalizers, v1beta1.Finalizer) {
		return
	}
	if !p.orphaned() {
		for _, ref := range children(p.key) {
			if live := p.caches.child(ref); live != nil && metav1.GetControllerOf(live) == nil && p.mine(live) {
				p.delete(ctx, ref, live)
			}
		}
		if len(p.refused) > 0 {
			return
		}
	}
	if slices.ContainsFunc(p.server.Finalizers, isCollectors) {
		// The API server adds these without an owner. An apply that gives up the last finalizer that has an owner
		// would take them along, and the garbage collector would not do what it was asked to. It removes them when
		// it is done, and that is the event that brings us back here.
		return
	}
	out := p.write(ctx, vocabulary.Finalizer, serverRef(p.key),
		toolhivev1beta1ac.MCPServer(p.key.Name, p.key.Namespace), true)
	if out.Err == nil {
		klog.FromContext(ctx).Info("Released the finalizer")
	}
}

// orphaned tells whether the children of an MCPServer that is being deleted are to stay behind. The sign of it goes
// when the garbage collector has taken the reference from every one of them, so children none of which refers to the
// MCPServer have been orphaned, too. To keep what was not meant to stay does less harm than the reverse.
func (p *pass) orphaned() bool {
	if slices.Contains(p.server.Finalizers, metav1.FinalizerOrphanDependents) {
		return true
	}
	return !slices.ContainsFunc(children(p.key), func(ref apply.ObjectRef) bool {
		live := p.caches.child(ref)
		return live != nil && metav1.IsControlledBy(live, p.server)
	})
}

// isCollectors tells whether a finalizer is one of the garbage collector's.
func isCollectors(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}
