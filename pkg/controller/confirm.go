// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/freehold-dev/freehold/pkg/controller/observed"

	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
)

// doubts names the children that record newer states of references than this pass knows, each with all that a writer of it would
// change, and those references.
func doubts(v *observed.Snapshot, known apply.References) (text string, children []apply.ObjectRef, references []string) {
	var found []string
	for ref, live := range v.Existing() {
		names := known.Ahead(live, v1beta1.AnnotationReferences)
		if len(names) == 0 || live.GetDeletionTimestamp() != nil || !v.IsOwned(ref, live) {
			continue
		}
		children, references = append(children, ref), append(references, names...)
		found = append(found, fmt.Sprintf("%s@%x", ref, v.Children[ref].EntriesHash()))
	}
	if len(found) == 0 {
		return "", nil, nil
	}
	slices.Sort(found)
	slices.Sort(references)
	return strings.Join(append(found, known.String()), " "), children, slices.Compact(references)
}

// confirmationBounds bound how often references are read to confirm that they have no newer state.
var confirmationBounds = priorityqueue.Bounds{Shortest: minBackoff, Longest: maxBackoff}

// confirmReferences finds the children that record newer states of references for which a read confirms that no such states exist: the
// API server has the objects as this cache has them. Then the annotation was forged, or restored from a copy, and would hold the writer
// back for ever. A confirmation takes a read of each object, so it is repeated after waits that grow.
func confirmReferences(ctx context.Context, p *pass) {
	text, children, references := doubts(p.Snapshot, p.references)
	if text == "" {
		return
	}
	if p.state.confirmedReferences == text {
		p.confirmed = children
		return
	}
	if left := p.state.confirmationWait.Left(p.config.Clock.Now()); left > 0 {
		p.wake = sooner(p.wake, left)
		return
	}
	p.wake = sooner(p.wake, p.state.confirmationWait.Begin(p.config.Clock.Now(), confirmationBounds))
	for _, ours := range p.references {
		if !slices.Contains(references, ours.Name) {
			continue
		}
		theirs, err := p.clients.ReadReference(ctx, p.Key.Namespace, ours.Name)
		if err != nil {
			klog.FromContext(ctx).Info("Cannot make sure that a reference is as it was seen", "reference", ours.Name, "err", err)
			return
		}
		if theirs.GetUID() != ours.UID || theirs.GetGeneration() != ours.Generation ||
			ours.Generation == 0 && theirs.GetResourceVersion() != ours.ResourceVersion {
			return // This cache is behind. It will catch up, and that wakes the MCPServer.
		}
	}
	p.state.confirmedReferences = text
	p.confirmed = children
}
