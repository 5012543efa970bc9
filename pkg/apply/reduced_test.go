// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"flag"
	"os"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
)

// reduced reports that writers are given the state of objects instead of the objects.
var reduced bool

// TestMain runs everything twice: what a writer does must not depend on whether the object is at hand. The second time a quarter of
// the random cases will do: they differ in how the state of the object is read, and in nothing else.
func TestMain(m *testing.M) {
	code := m.Run()
	reduced = true
	const checks = "rapid.checks"
	if count, err := strconv.Atoi(flag.Lookup(checks).Value.String()); err == nil {
		_ = flag.Set(checks, strconv.Itoa(max(1, count/4)))
	}
	if again := m.Run(); code == 0 {
		code = again
	}
	os.Exit(code)
}

// do is Applier.Sync, with the object or with its state.
func do(ctx context.Context, applier *apply.Applier, w apply.Writer, req apply.Request) apply.Outcome {
	live, ok := req.Live.(*deployment)
	if !reduced || !ok || w.Name() == status.Name {
		return applier.Sync(ctx, w, req)
	}
	return onState(ctx, applier, w, req, func() (metav1.Object, error) { return live, nil })
}

// onState is Applier.Sync with the state of an object, which read returns.
func onState(
	ctx context.Context, applier *apply.Applier, w apply.Writer, req apply.Request, read func() (metav1.Object, error),
) apply.Outcome {
	live := req.Live
	state := applier.Reduce(req.Object, live, nil, w)
	state.Object = identityOf(live)
	req.Live, req.State = nil, state
	req.Load = func(context.Context) (metav1.Object, error) { return read() }
	out := applier.Sync(ctx, w, req)
	if out.Live == state.Object {
		out.Live = live
	}
	return out
}

// identityOf is what a cache keeps of an object beside its state.
func identityOf(live metav1.Object) metav1.Object {
	kept := &metav1.ObjectMeta{
		Namespace: live.GetNamespace(), Name: live.GetName(), UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(),
		Generation: live.GetGeneration(), DeletionTimestamp: live.GetDeletionTimestamp(), OwnerReferences: live.GetOwnerReferences(),
		Labels: live.GetLabels(), Annotations: live.GetAnnotations(), Finalizers: live.GetFinalizers(),
	}
	for _, entry := range live.GetManagedFields() {
		entry.FieldsV1 = nil
		kept.ManagedFields = append(kept.ManagedFields, entry)
	}
	return kept
}
