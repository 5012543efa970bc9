// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestAPIServerOutage takes the API server away while MCPServers are edited, and brings it back; then it freezes it,
// and has the operator end meanwhile. In the end every edit that was accepted is carried out.
func TestAPIServerOutage(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	own := harness.NewForTest(t)
	own.Expect(t, harness.BrokenConnections, "")
	// An API server that starts denies everything for a moment, until it has read who may do what.
	own.Expect(t, harness.Forbidden, "")
	s := newStage(t, own)
	first := s.CrashableOperator(t, harness.Watching(s.Name))
	const count = 20
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("web-%d", i))
		s.Create(t, harness.HTTPServer(names[i]))
	}
	for _, name := range names {
		s.AwaitStatus(t, name, harness.Fine...)
	}

	var editing errgroup.Group
	edits := newEdits(s, names)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	editing.Go(func() error { return edits.run(ctx) })
	edits.await(t, count)
	// The scheduler ends by itself when it finds a pod bound of which it did not hear that.
	for _, component := range []cluster.Component{cluster.Scheduler, cluster.APIServer} {
		if err := own.Cluster.StopComponent(component); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, "the operator has noticed", func(ctx context.Context) error {
		failed, err := harness.Metric(ctx, first.Process, "rest_client_requests_total", `code="<error>"`)
		if err == nil && failed < 5 {
			err = fmt.Errorf("%v of its requests have failed", failed)
		}
		return err
	})
	if err := own.Cluster.StartComponent(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	// The rest of the control plane is not what is tested, and may take a minute to look for the API server again.
	for _, component := range []cluster.Component{cluster.ControllerManager, cluster.Scheduler, cluster.Kwok} {
		if err := errors.Join(own.Cluster.StopComponent(component), own.Cluster.StartComponent(t.Context(), component)); err != nil {
			t.Fatal(err)
		}
	}
	edits.await(t, count)
	stop()
	if err := editing.Wait(); err != nil {
		t.Fatal(err)
	}
	edits.awaitCarriedOut(t)
	select {
	case <-first.Done():
		t.Fatal("the operator has ended")
	default:
	}
	for _, name := range names {
		s.AwaitStatus(t, name, harness.Fine...)
		s.AwaitSettled(t, name)
	}
	s.AwaitRest(t)
	s.Quiet(t, s.Mark(t), harness.Calm)

	// It has its hands full when nothing is answered any more.
	mark := s.Mark(t)
	editing.Go(func() error { return edits.all(t.Context()) })
	s.AwaitWrites(t, mark, "the operator carries the edits out", func(found []*audit.Event) bool { return len(found) > count/2 })
	if err := own.Cluster.Pause(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	checkEnds(t, first.Process, nil)
	if err := own.Cluster.Resume(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	if err := editing.Wait(); err != nil {
		t.Fatal(err)
	}
	s.Operate(t)
	edits.awaitCarriedOut(t)
	for _, name := range names {
		s.AwaitStatus(t, name, harness.Fine...)
	}
	s.checkAllOwnership(t, len(names))

	violations, requests, err := own.Violations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests were looked at", requests)
	for _, v := range violations {
		t.Error(v)
	}
}

// edits give MCPServers other values of a variable, and remember the last that was accepted.
type edits struct {
	*stage
	names    []string
	number   int
	accepted chan string
	// last is the value of each MCPServer. It is not read while edits are being made.
	last map[string]string
}

const editedVariable = "EDITED"

func newEdits(s *stage, names []string) *edits {
	return &edits{stage: s, names: names, accepted: make(chan string), last: map[string]string{}}
}

// run makes edits, one after the other, until the context ends. Those that fail are lost.
func (e *edits) run(ctx context.Context) error {
	for i := 0; ; i++ {
		name := e.names[i%len(e.names)]
		if err := e.one(ctx, name); err != nil && ctx.Err() == nil {
			continue
		}
		select {
		case e.accepted <- name:
		case <-ctx.Done():
			return nil
		}
	}
}

// all edits each MCPServer.
func (e *edits) all(ctx context.Context) error {
	var errs []error
	for _, name := range e.names {
		errs = append(errs, e.one(ctx, name))
	}
	return errors.Join(errs...)
}

func (e *edits) one(ctx context.Context, name string) error {
	e.number++
	server, err := e.Servers.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	value := strconv.Itoa(e.number)
	server.Spec.Env = []v1beta1.EnvVar{{Name: editedVariable, Value: value}}
	if _, err := e.Servers.Update(ctx, server, metav1.UpdateOptions{FieldManager: harness.Author}); err != nil {
		return err
	}
	e.last[name] = value
	return nil
}

// await waits until so many more edits have been accepted.
func (e *edits) await(t *testing.T, count int) {
	t.Helper()
	for n := range count {
		harness.Await(t, fmt.Sprintf("edit %d of %d is accepted", n+1, count), e.accepted)
	}
}

// awaitCarriedOut waits until the RunConfigs and the backends have the values of the MCPServers.
func (e *edits) awaitCarriedOut(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "every edit is carried out", func(ctx context.Context) error {
		for _, name := range e.names {
			// An edit whose answer was lost may have been accepted all the same.
			server, err := e.Servers.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			value := server.Spec.Env[0].Value
			if atLeast, _ := strconv.Atoi(e.last[name]); atLeast > 0 {
				if got, _ := strconv.Atoi(value); got < atLeast {
					return fmt.Errorf("MCPServer %s has lost edit %s, it has %s", name, e.last[name], value)
				}
			}
			runConfig, err := e.Object(ctx, harness.RunConfig, name)
			if err != nil {
				return err
			}
			if !strings.Contains(fmt.Sprint(runConfig.Object["data"]), fmt.Sprintf("%q: %q", editedVariable, value)) {
				return fmt.Errorf("the RunConfig of %s has not the value %s", name, value)
			}
			backend, err := e.Core.AppsV1().StatefulSets(e.Name).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := backend.Spec.Template.Spec.Containers[0].Env[0].Value; got != value {
				return fmt.Errorf("the StatefulSet of %s has the value %s, not %s", name, got, value)
			}
		}
		return nil
	})
}
