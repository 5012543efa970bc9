// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	leaseName = "freehold"
	// shortLease is how long a lease lasts in tests that wait until it has run out.
	shortLease = 10 * time.Second
	// takeover is how long another replica may take once it can have the lease: until it looks again, has filled its
	// caches, and has written.
	takeover = 6 * time.Second
)

// replica is one of several operators with a lease between them. Each has a ServiceAccount of its own, so that the
// audit log tells them apart.
type replica struct {
	*harness.CrashableOperator
	account narrow
}

// replica runs an operator that works while it holds the lease.
func (s *stage) replica(t *testing.T, name string, args ...string) *replica {
	t.Helper()
	account := s.newNarrow(t, name)
	s.grant(t, account, append(namespacedRole(t).Rules, rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"},
	}))
	return &replica{s.CrashableOperator(t, append([]string{
		harness.Watching(s.Name), account.kubeconfig(t, s.Env), "--leader-elect=true",
		"--leader-elect-resource-namespace=" + s.Name, "--leader-elect-resource-name=" + leaseName,
	}, args...)...), account}
}

// short are flags for a lease that runs out soon.
func short() []string {
	return []string{
		"--leader-elect-lease-duration=" + shortLease.String(), "--leader-elect-renew-deadline=8s",
		"--leader-elect-retry-period=500ms",
	}
}

// holder returns who holds the lease; empty when nobody does.
func (s *stage) holder(ctx context.Context) (string, error) {
	lease, err := s.Core.CoordinationV1().Leases(s.Name).Get(ctx, leaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && lease.Spec.HolderIdentity == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// awaitHolder waits until somebody else than the given one holds the lease, and returns who.
func (s *stage) awaitHolder(t *testing.T, not string) (holder string) {
	t.Helper()
	harness.Eventually(t, "another holder of the lease", func(ctx context.Context) (err error) {
		if holder, err = s.holder(ctx); err != nil {
			return err
		}
		if holder == not || holder == "" {
			return fmt.Errorf("it is %q", holder)
		}
		return nil
	})
	return holder
}

// awaitEnd waits until an operator has ended by itself.
func awaitEnd(t *testing.T, r *replica, within time.Duration) {
	t.Helper()
	ctx, cancel := harness.WithinPace(t.Context(), within)
	defer cancel()
	select {
	case <-r.Done():
	case <-ctx.Done():
		t.Fatalf("the operator has not ended within %v", within)
	}
}

// TestLeaderCrash kills the leader. Another replica takes over when the lease has run out.
func TestLeaderCrash(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	first := s.replica(t, "first", short()...)
	leader := s.awaitHolder(t, "")
	second := s.replica(t, "second", short()...)
	s.Create(t, harness.HTTPServer("web"))
	s.AwaitStatus(t, "web", harness.Fine...)
	s.AwaitRest(t)

	mark := s.Mark(t)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	s.awaitHolder(t, leader)
	s.AwaitStatus(t, "web", harness.Fine...)
	s.AwaitImage(t, "web", harness.OtherImage)
	t.Logf("another replica had done the work %v after the crash", time.Since(began).Round(time.Millisecond))
	if took := harness.AtPace(began, s.firstWrite(t, second, mark).Sub(began)); took > shortLease+takeover {
		t.Errorf("another replica wrote %v after the crash, with a lease of %v", took, shortLease)
	}
}

// firstWrite is when a replica first wrote something that is no lease.
func (s *stage) firstWrite(t *testing.T, r *replica, since audit.Mark) time.Time {
	t.Helper()
	for _, e := range r.account.requests(t, s, since) {
		if e.IsWrite() && e.Resource != "leases" {
			return e.Received
		}
	}
	t.Fatal("it wrote nothing")
	return time.Time{}
}

// TestLeaderStops asks the leader to end. It gives the lease back, and another replica need not wait until it would
// have run out, which with the default takes 15 s.
func TestLeaderStops(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	first := s.replica(t, "first")
	leader := s.awaitHolder(t, "")
	second := s.replica(t, "second")
	s.Create(t, harness.HTTPServer("web"))
	s.AwaitStatus(t, "web", harness.Fine...)
	s.AwaitRest(t)

	mark := s.Mark(t)
	began := time.Now()
	checkEnds(t, first.Process, nil)
	s.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	s.awaitHolder(t, leader)
	s.AwaitImage(t, "web", harness.OtherImage)
	took := harness.AtPace(began, s.firstWrite(t, second, mark).Sub(began))
	t.Logf("another replica wrote after %v", took.Round(time.Millisecond))
	if took > takeover {
		t.Errorf("another replica wrote %v after the leader was asked to end", took)
	}
	checkEnds(t, second.Process, nil)
	harness.Eventually(t, "nobody holds the lease", func(ctx context.Context) error {
		holder, err := s.holder(ctx)
		if err == nil && holder != "" {
			err = fmt.Errorf("%s does", holder)
		}
		return err
	})
}

// TestPausedLeader freezes the leader while it has its hands full, until another replica has taken over and done what
// was asked for meanwhile. When it goes on, nothing of what it was about to do comes through; but for a ConfigMap that is
// named by its content and was never there, which no precondition can keep out. No template names it, and it is deleted.
func TestPausedLeader(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newStage(t, env)
	first := s.replica(t, "first", short()...)
	leader := s.awaitHolder(t, "")
	second := s.replica(t, "second", short()...)
	const count = 20
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("web-%d", i))
		s.Create(t, harness.HTTPServer(names[i]))
	}
	for _, name := range names {
		s.AwaitStatus(t, name, harness.Fine...)
	}
	s.AwaitRest(t)

	// It is frozen when its first writes for an edit have come through and many are to follow.
	edited := s.Mark(t)
	setImage := func(image string) {
		for _, name := range names {
			s.Edit(t, name, func(server *v1beta1.MCPServer) { server.Spec.Image = image })
		}
	}
	froze := make(chan error, 1)
	go func() {
		ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
		defer cancel()
		_, _, err := s.Audit.WaitFor(ctx, edited, func(events []*audit.Event) bool { return len(events) > 2 },
			first.account.childWrites())
		froze <- errors.Join(err, first.Pause())
	}()
	setImage("example.com/mcp:old")
	if err := <-froze; err != nil {
		t.Fatal(err)
	}
	s.awaitHolder(t, leader)
	setImage(harness.OtherImage)
	for _, name := range names {
		s.AwaitStatus(t, name, harness.Fine...)
		s.AwaitImage(t, name, harness.OtherImage)
	}
	s.AwaitRest(t)

	resumed := s.Mark(t)
	if err := first.Resume(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, first, harness.Timeout)
	if err := first.Stop(); err == nil {
		t.Error("an operator that lost its lease ended as if it had been asked to")
	}
	refused := 0
	for _, e := range first.account.requests(t, s, resumed) {
		madeConfig := e.Resource == "configmaps" && e.Code == http.StatusCreated
		switch {
		case e.Resource == "leases" || e.Resource == "events" || !e.IsWrite() || madeConfig:
		case e.Succeeded():
			t.Errorf("a write of the old leader came through: %v\n%s", e, e.Body)
		default:
			refused++
		}
	}
	// It may have been frozen between two writes, and then ends before it tries another one.
	t.Logf("%d writes that the old leader tried when it went on were refused", refused)
	env.Numbers.Add("paused leader: late writes that the API server refused", refused)
	s.AwaitRest(t)
	// Not resourceVersions: the StatefulSet controller may still write the end of a rollout into a status.
	for _, name := range names {
		s.AwaitImage(t, name, harness.OtherImage)
	}
	harness.Eventually(t, "every RunConfig is that of some revision", func(ctx context.Context) error {
		configs, err := s.Core.CoreV1().ConfigMaps(s.Name).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelComponent + "=run-config"})
		if err != nil {
			return err
		}
		revisions, err := s.Core.AppsV1().ReplicaSets(s.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range configs.Items {
			name := configs.Items[i].Name
			if !slices.ContainsFunc(revisions.Items, func(r appsv1.ReplicaSet) bool {
				return slices.ContainsFunc(r.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == name })
			}) {
				return fmt.Errorf("no ReplicaSet names %s", name)
			}
		}
		return nil
	})
	select {
	case <-second.Done():
		t.Error("the new leader has ended")
	default:
	}
}

// childWrites wants the ServiceAccount's successful writes of children.
func (n narrow) childWrites() audit.Filter {
	mine := audit.ServiceAccount(n.namespace, n.name)
	return func(e *audit.Event) bool {
		return mine(e) && e.IsApply() && e.Succeeded() && e.Resource != "mcpservers"
	}
}
