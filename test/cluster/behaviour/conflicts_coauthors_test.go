// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// Those who write to MCPServers besides their author and the operator.
const (
	// policyOwner applies spec.authzConfig.
	policyOwner = "policy-controller"
	// auditOwner applies a condition of its own.
	auditOwner       = "audit-controller"
	auditedCondition = "example.com/Audited"
	// putClient reads an MCPServer, changes it and writes it back as a whole.
	putClient = "put-client"
	// holdOwner applies a finalizer of its own.
	holdOwner     = "hold-controller"
	holdFinalizer = "example.com/hold"
)

const (
	// coauthored is how many MCPServers several write to at a time, and coauthorWrites how often each of three does so.
	coauthored     = 3
	coauthorWrites = 36
	// putAnnotation is an annotation of putClient's.
	putAnnotation = "example.com/put"
)

// coauthors are those who write to one MCPServer, and what they have written.
type coauthors struct {
	ns   *harness.Namespace
	name string

	mu sync.Mutex
	// versions are the resourceVersions that they made.
	versions map[string]bool
	writes   int
	// The last values of each; only their writer changes them.
	policy, audited, annotation, variable, restart string
}

// wrote keeps in mind what a write has led to.
func (c *coauthors) wrote(server *v1beta1.MCPServer, err error) error {
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions[server.ResourceVersion] = true
	c.writes++
	return nil
}

// applyPolicy applies another authorization policy, and nothing else.
func (c *coauthors) applyPolicy(ctx context.Context, round int, _ *rand.Rand) error {
	c.policy = fmt.Sprintf("permit(principal, action, resource); // %d", round)
	return c.wrote(c.sendPolicy(ctx))
}

func (c *coauthors) sendPolicy(ctx context.Context) (*v1beta1.MCPServer, error) {
	config := toolhivev1beta1ac.MCPServer(c.name, c.ns.Name).WithSpec(toolhivev1beta1ac.MCPServerSpec().
		WithAuthzConfig(toolhivev1beta1ac.AuthzConfigRef().WithType(v1beta1.AuthzConfigTypeInline).
			WithInline(toolhivev1beta1ac.InlineAuthzConfig().WithPolicies(c.policy))))
	return c.ns.Servers.Apply(ctx, config, metav1.ApplyOptions{FieldManager: policyOwner})
}

// applyCondition applies a condition to the status.
func (c *coauthors) applyCondition(ctx context.Context, round int, random *rand.Rand) error {
	c.audited = fmt.Sprintf("audit %d", round)
	status := metav1.ConditionTrue
	if random.IntN(2) == 0 {
		status = metav1.ConditionFalse
	}
	config := toolhivev1beta1ac.MCPServer(c.name, c.ns.Name).WithStatus(toolhivev1beta1ac.MCPServerStatus().
		WithConditions(metav1ac.Condition().WithType(auditedCondition).WithStatus(status).WithReason("Audited").
			WithMessage(c.audited).WithLastTransitionTime(metav1.Now())))
	return c.wrote(c.ns.Servers.ApplyStatus(ctx, config, metav1.ApplyOptions{FieldManager: auditOwner}))
}

// put writes a whole MCPServer: with another annotation, other variables and replicas, or a request to restart the proxy.
func (c *coauthors) put(ctx context.Context, round int, random *rand.Rand) error {
	text := fmt.Sprint(round)
	change := func(server *v1beta1.MCPServer) {
		metav1.SetMetaDataAnnotation(&server.ObjectMeta, putAnnotation, text)
		c.annotation = text
	}
	switch random.IntN(3) {
	case 0:
		change = func(server *v1beta1.MCPServer) {
			server.Spec.Env = []v1beta1.EnvVar{{Name: "ROUND", Value: text}}
			// Several proxies without a session store are warned of, so a condition comes and goes.
			harness.Replicas(1+int32(random.IntN(2)), 1)(server)
			c.variable = text
		}
	case 1:
		at := time.Now().Add(-time.Minute).Add(time.Duration(round) * time.Second).UTC().Format(time.RFC3339)
		change = func(server *v1beta1.MCPServer) {
			metav1.SetMetaDataAnnotation(&server.ObjectMeta, v1beta1.AnnotationRestartedAt, at)
			c.restart = at
		}
	}
	return retry.OnError(wait.Backoff{Steps: 100, Duration: time.Millisecond, Factor: 1.1, Cap: harness.Poll}, apierrors.IsConflict, func() error {
		server, err := c.ns.Servers.Get(ctx, c.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(server)
		return c.wrote(c.ns.Servers.Update(ctx, server, metav1.UpdateOptions{FieldManager: putClient}))
	})
}

// write makes many writes, of each kind, and now and then waits until the operator has caught up.
func (c *coauthors) write(ctx context.Context, seed uint64) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, step := range []func(context.Context, int, *rand.Rand) error{c.applyPolicy, c.applyCondition, c.put} {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		group.Go(func() error {
			for round := range coauthorWrites {
				if err := step(ctx, round, random); err != nil {
					return fmt.Errorf("write %d of author %d: %w", round, i, err)
				}
				if random.IntN(4) > 0 {
					continue
				}
				if err := c.awaitOperator(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// awaitOperator waits until the operator has seen what there was when it began to wait.
func (c *coauthors) awaitOperator(ctx context.Context) error {
	var want int64
	ctx, cancel := harness.WithinPace(ctx, harness.Timeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, harness.Poll, true, func(ctx context.Context) (bool, error) {
		server, err := c.ns.Servers.Get(ctx, c.name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if want == 0 {
			want = server.Generation
		}
		return server.Status.ObservedGeneration >= want, nil
	})
}

// TestWritesOfTheOperatorTouchNothingOfCoauthors has others write to MCPServers while the operator does: by server-side apply to the spec
// and the status, and by writing back what they read. Whatever the order, no write of the operator's touches what is theirs.
func TestWritesOfTheOperatorTouchNothingOfCoauthors(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := env.Namespace(t)
	seen := followServers(t, ns)
	begin := ns.Mark(t)
	ns.Operate(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)

	all := map[string]*coauthors{}
	group, ctx := errgroup.WithContext(t.Context())
	for i := range coauthored {
		c := &coauthors{ns: ns, name: fmt.Sprintf("shared-%d", i), versions: map[string]bool{}}
		all[c.name] = c
		created := ns.Create(t, harness.Server(c.name, v1beta1.TransportStreamableHTTP))
		c.versions[created.ResourceVersion] = true
		held, err := ns.Servers.Apply(t.Context(), toolhivev1beta1ac.MCPServer(c.name, ns.Name).WithFinalizers(holdFinalizer),
			metav1.ApplyOptions{FieldManager: holdOwner})
		if err := c.wrote(held, err); err != nil {
			t.Fatal(err)
		}
		group.Go(func() error { return c.write(ctx, seed+uint64(i)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, c := range all {
		ns.AwaitSettled(t, name)
		ns.AwaitCalm(t, name)
		c.checkValues(t)
	}
	mark := ns.Mark(t)
	for _, c := range all {
		// To ask for the same once more changes nothing.
		if _, err := c.sendPolicy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ns.Quiet(t, mark, harness.Calm)

	for name := range all {
		ns.Delete(t, name, metav1.DeletePropagationBackground)
	}
	for name, c := range all {
		c.checkHeld(t)
		released, err := ns.Servers.Apply(t.Context(), toolhivev1beta1ac.MCPServer(name, ns.Name), metav1.ApplyOptions{FieldManager: holdOwner})
		if err := c.wrote(released, err); err != nil {
			t.Fatal(err)
		}
		ns.AwaitGone(t, name)
	}
	writes, theirs := seen.judge(t, all), 0
	for _, c := range all {
		theirs += c.writes
	}
	sent := ownServerWrites(t, ns, begin)
	t.Logf("%d writes by others, %d by the operator; it sent %d, of which %d lost a race", theirs, writes, sent.all, sent.all-sent.succeeded)
	if theirs < 300 || writes < 4*coauthored {
		t.Error("that is too few to say anything")
	}
	env.Numbers.Add("co-authors of MCPServers: their writes", theirs)
	env.Numbers.Add("co-authors of MCPServers: writes of the operator, each compared with the version before", writes)
	// Each write of the operator's that was accepted has changed something.
	if writes != sent.succeeded {
		t.Errorf("the operator has changed MCPServers %d times by %d writes", writes, sent.succeeded)
	}
}

// checkValues looks whether everything that the others wrote last is there, and is theirs.
func (c *coauthors) checkValues(t *testing.T) {
	t.Helper()
	server, err := c.ns.Servers.Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{"", "", server.Annotations[putAnnotation], "", server.Annotations[v1beta1.AnnotationRestartedAt]}
	if a := server.Spec.AuthzConfig; a != nil && a.Inline != nil {
		got[0] = strings.Join(a.Inline.Policies, "|")
	}
	if condition := meta.FindStatusCondition(server.Status.Conditions, auditedCondition); condition != nil {
		got[1] = condition.Message
	}
	for _, v := range server.Spec.Env {
		got[3] += v.Value
	}
	if diff := cmp.Diff([]string{c.policy, c.audited, c.annotation, c.variable, c.restart}, got); diff != "" {
		t.Errorf("values of others of MCPServer %s (-written +read):\n%s", c.name, diff)
	}
	owners := map[string]bool{}
	for _, entry := range server.ManagedFields {
		owners[fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Subresource)] = true
	}
	want := map[string]bool{
		harness.Author + " Update ": true, policyOwner + " Apply ": true, auditOwner + " Apply status": true, putClient + " Update ": true,
		holdOwner + " Apply ": true, managers.Finalizer + " Apply ": true, managers.Status + " Apply status": true,
	}
	if diff := cmp.Diff(want, owners); diff != "" {
		t.Errorf("owners of MCPServer %s (-want +got):\n%s", c.name, diff)
	}
}

// checkHeld waits until the operator has given up its finalizer; the other one stays.
func (c *coauthors) checkHeld(t *testing.T) {
	t.Helper()
	c.ns.AwaitServer(t, c.name, "is held by the other finalizer", func(server *v1beta1.MCPServer) error {
		if server.DeletionTimestamp == nil || !slices.Equal(server.Finalizers, []string{holdFinalizer}) {
			return fmt.Errorf("finalizers %v", server.Finalizers)
		}
		return nil
	})
	// A busy API server logs the release some time after others see it.
	c.ns.AwaitCalm(t, c.name)
	mark := c.ns.Mark(t)
	// What still is written to it concerns nobody any more.
	if err := c.applyPolicy(t.Context(), coauthorWrites, nil); err != nil {
		t.Fatal(err)
	}
	if found, _ := c.ns.WritesFor(t, c.name, mark, time.Second); found {
		t.Errorf("the operator writes to what it has given up: %v", c.ns.Writes(t, mark))
	}
}

// sentWrites are how many writes of MCPServers the operator sent, and how many were accepted.
type sentWrites struct{ all, succeeded int }

func ownServerWrites(t *testing.T, ns *harness.Namespace, since audit.Mark) sentWrites {
	t.Helper()
	var sent sentWrites
	form := harness.FormOf(harness.ServerItself)
	for _, e := range ns.Writes(t, since) {
		if e.Group != form.Resource.Group || e.Resource != form.Resource.Resource {
			continue
		}
		sent.all++
		if e.Succeeded() {
			sent.succeeded++
		}
	}
	return sent
}
