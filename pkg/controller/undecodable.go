// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// read looks at all that a pass decides on, so that what cannot be decoded is known before anything is done. To go on
// without it would be to take it for gone.
func (p *pass) read() {
	for _, ref := range p.children(p.key) {
		p.object(ref)
	}
	p.proxyPods()
	p.backendPods()
}

// broken notes an object that cannot be decoded.
func (p *pass) broken(ref apply.ObjectRef, err error) {
	if err == nil {
		return
	}
	if p.undecoded == nil {
		p.undecoded = map[apply.ObjectRef]error{}
	}
	p.undecoded[ref] = err
}

// undecodable logs and counts an object that a cache holds and that cannot be decoded.
func (c *Controller) undecodable(ctx context.Context, ref apply.ObjectRef, err error) {
	klog.FromContext(ctx).Error(err, "A cached object cannot be decoded, and nothing is done without it", "object", ref.String())
	refusal := &apply.Refusal{
		Class: apply.ClassTransient, Object: ref, Reason: fmt.Sprintf("the cached object cannot be decoded: %v", err), Cause: err,
	}
	if ref.Kind != podKind {
		refusal.Writer = takeover.MainWriter(ref)
	}
	c.applier.Note(ctx, apply.Outcome{Writer: refusal.Writer, Object: ref, Action: apply.ActionRefused, Err: refusal})
}
