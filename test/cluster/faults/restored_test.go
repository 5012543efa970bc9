// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestEtcdIsRestoredFromASnapshot takes the cluster back to an earlier state, as etcdutl snapshot restore does: versions that the operator
// has seen are to come once more. A watch from one of them is silent. The operator cannot renew its lease meanwhile, so it ends; the one
// that is started instead knows nothing but the restored state, and goes on from there.
func TestEtcdIsRestoredFromASnapshot(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	own := harness.NewForTest(t)
	own.Expect(t, harness.BrokenConnections, "")
	own.Expect(t, harness.Forbidden, "") // An API server that starts denies everything for a moment.
	s := newStage(t, own)
	first := s.replica(t, "first", short()...)
	s.Create(t, harness.HTTPServer("web"))
	s.AwaitStatus(t, "web", harness.Fine...)
	before := s.AwaitSettled(t, "web")
	data, snapshot := filepath.Join(own.Cluster.Dir(), "etcd"), filepath.Join(t.TempDir(), "etcd")
	if err := errors.Join(own.Cluster.Pause(cluster.Etcd), os.CopyFS(snapshot, os.DirFS(data)), own.Cluster.Resume(cluster.Etcd)); err != nil {
		t.Fatal(err)
	}
	s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	s.AwaitImage(t, "web", harness.OtherImage)
	s.Create(t, harness.HTTPServer("late"))
	for _, name := range []string{"web", "late"} {
		s.AwaitStatus(t, name, harness.Fine...)
		s.AwaitSettled(t, name)
	}
	without(t, own, func() error {
		awaitEnd(t, first, shortLease+takeover)
		return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(snapshot)))
	})
	mark := s.Mark(t)
	s.replica(t, "second", short()...)
	s.AwaitStatus(t, "web", harness.Fine...)
	s.AwaitSettled(t, "web")
	s.AwaitRest(t)
	s.AwaitImage(t, "web", before.Spec.Image)
	for _, e := range s.Writes(t, mark) {
		if e.Subresource != "status" {
			t.Errorf("the operator wrote %s %s of the restored state, which it had left as it should be", e.Resource, e.Name)
		}
	}
	s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	s.AwaitImage(t, "web", harness.OtherImage)
}

// without stops the control plane, does something, and starts it again.
func without(t *testing.T, own *harness.Env, do func() error) {
	t.Helper()
	all := []cluster.Component{cluster.Kwok, cluster.Scheduler, cluster.ControllerManager, cluster.APIServer, cluster.Etcd}
	for _, component := range all {
		if err := own.Cluster.StopComponent(component); err != nil {
			t.Fatal(err)
		}
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	for _, component := range slices.Backward(all) {
		if err := own.Cluster.StartComponent(t.Context(), component); err != nil {
			t.Fatal(err)
		}
	}
}
