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
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

// finalize takes care of an MCPServer that is being deleted. The garbage collector deletes the children that
// refer to it; ours to delete are those that lost their reference, unless they were asked to stay behind. Then
// the finalizer is given up.
func (p *pass) finalize(ctx context.Context) {
	if !slices.Contains(p.server.Finalizers, v1beta1.Finalizer) {
		return
	}
	if !slices.Contains(p.server.Finalizers, metav1.FinalizerOrphanDependents) {
		for _, ref := range children(p.key) {
			if live := p.caches.child(ref); live != nil && metav1.GetControllerOf(live) == nil && p.mine(live) {
				p.delete(ctx, ref, live)
			}
		}
		if len(p.refused) > 0 {
			return
		}
	}
	out := p.write(ctx, vocabulary.Finalizer, serverRef(p.key),
		toolhivev1beta1ac.MCPServer(p.key.Name, p.key.Namespace), true)
	if out.Err == nil {
		klog.FromContext(ctx).Info("Released the finalizer")
	}
}
