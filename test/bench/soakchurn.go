// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// operation is one thing that a user or another client does.
type operation string

const (
	// editService changes the spec so that one Service changes, and editBackend so that both workloads are replaced.
	editService operation = "edit that changes a Service"
	editBackend operation = "edit that replaces pods"
	// editImage changes the image of a proxy by hand, or takes that back.
	editImage operation = "image by hand"
	// deleteChild deletes a child by hand.
	deleteChild operation = "child deleted by hand"
	labelChild  operation = "foreign label"
	// scaleProxy scales a proxy by hand, from one to two or back.
	scaleProxy operation = "scale by hand"
)

// shares are how often each operation is drawn, of a hundred, and how many writes of the operator it may cause at most. A status
// changes several times while pods are replaced.
var shares = []struct {
	operation     operation
	share, writes int
}{
	{editService, 30, 4}, {editBackend, 15, 16}, {editImage, 15, 10}, {deleteChild, 15, 12}, {labelChild, 15, 0}, {scaleProxy, 10, 6},
}

// draw is one step of the churn, as the seed decides it.
type draw struct {
	operation operation
	server    int
	// choice is for what else is to be chosen.
	choice uint64
}

// draws are the steps of the churn. The same seed gives the same ones.
type draws struct {
	random  *rand.Rand
	servers int
}

func newDraws(seed uint64, servers int) *draws {
	return &draws{random: rand.New(rand.NewPCG(seed, seed)), servers: servers}
}

func (d *draws) next() draw {
	at := d.random.IntN(100)
	next := draw{server: d.random.IntN(d.servers), choice: d.random.Uint64()}
	for _, s := range shares {
		if at < s.share {
			next.operation = s.operation
			return next
		}
		at -= s.share
	}
	panic("the shares of operations are less than 100")
}

// writesDue is how many writes an operation may cause at most.
func writesDue(of operation) int {
	for _, s := range shares {
		if s.operation == of {
			return s.writes
		}
	}
	return 0
}

// churn carries out operations on MCPServers of a namespace.
type churn struct {
	site      *site
	namespace string
	observer  *observer
	waits     *waits
	draws     *draws
	// image is the one that the operator gives to proxies.
	image string

	mu sync.Mutex
	// uids are those of the MCPServers, and generations are those that their edits have led to.
	uids        map[string]types.UID
	generations map[string]int64
	// contested are those whose proxy has an image by hand, and scaled those with two proxies.
	contested, scaled map[string]bool
	// labels are the foreign labels that children should have.
	labels map[childKey]foreignLabel
	// made counts the operations, and skipped those that found their MCPServer busy or contested.
	made    map[operation]int
	skipped int
	// due is how many writes the operations on an MCPServer may have caused.
	due map[string]int
	// applied takes how long edits took; nil while nobody asks.
	applied *[]time.Duration
	errs    []error
	number  int
}

// childrenToDelete are the resources of what is deleted by hand.
var childrenToDelete = []string{"services", "roles", "rolebindings", "serviceaccounts", "configmaps", "deployments", "statefulsets"}

// do carries out one step, unless another operation concerns the same MCPServer. It does not wait for the effect.
func (c *churn) do(ctx context.Context, next draw) {
	name := serverName(next.server)
	if !c.waits.reserve(name) {
		c.skip()
		return
	}
	expected, err := c.carryOut(ctx, name, next)
	switch {
	case errors.Is(err, errNotNow):
		c.skip()
		c.waits.release(name)
		return
	case err != nil:
		c.fail(fmt.Errorf("%s, MCPServer %s: %w", next.operation, name, err))
	}
	c.mu.Lock()
	c.made[next.operation]++
	c.due[name] += writesDue(next.operation)
	c.mu.Unlock()
	if !expected {
		c.waits.release(name)
	}
}

// errNotNow says that an operation makes no sense on an MCPServer as it is.
var errNotNow = errors.New("not now")

// carryOut sends the request of an operation. It reports whether an effect is waited for.
func (c *churn) carryOut(ctx context.Context, name string, next draw) (expected bool, err error) {
	switch next.operation {
	case editService:
		patch := fmt.Sprintf(`{"spec":{"resourceOverrides":{"proxyService":{"annotations":{"bench.freehold.dev/soak":"%d"}}}}}`, c.count())
		return true, c.edit(ctx, name, "services", patch)
	case editBackend:
		if c.is(c.contested, name) {
			return false, errNotNow // The Deployment would not follow, nor would Ready come back.
		}
		patch := fmt.Sprintf(`{"spec":{"env":[{"name":"TRANSPORT","value":"streamable-http"},{"name":"SOAK","value":"%d"}]}}`, c.count())
		return true, c.edit(ctx, name, "statefulsets", patch)
	case editImage:
		return true, c.toggleImage(ctx, name)
	case deleteChild:
		return true, c.deleteOne(ctx, name, next.choice)
	case labelChild:
		return false, c.labelOne(ctx, name, next.choice)
	default:
		return false, c.toggleScale(ctx, name)
	}
}

// edit changes the spec of an MCPServer, and waits for the child of a resource that is written from it.
func (c *churn) edit(ctx context.Context, name, resource, patch string) error {
	c.mu.Lock()
	before := c.generations[name]
	c.mu.Unlock()
	c.waits.expect(&expectation{
		what: "a child of resource " + resource + " is written from the edit", server: name,
		met:  func(seen sighting) bool { return seen.resource == resource && seen.source > before },
		done: c.took,
	})
	edited, err := c.site.servers.ToolhiveV1beta1().MCPServers(c.namespace).Patch(ctx, name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: hand})
	if err != nil {
		c.waits.release(name)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generations[name] = edited.Generation
	return nil
}

// toggleImage changes the image of a proxy by hand, or takes that back.
func (c *churn) toggleImage(ctx context.Context, name string) error {
	c.mu.Lock()
	contested := !c.contested[name]
	c.contested[name] = contested
	c.mu.Unlock()
	edit, what := imageEdit(handImage), "a conflict is named"
	if !contested {
		edit, what = imageEdit(c.image), "the conflict is over"
	}
	c.waits.expect(&expectation{what: what, server: name, met: func(seen sighting) bool {
		return seen.resource == serversResource && seen.conflict == contested
	}})
	err := edit.apply(ctx, c.site, c.namespace, name)
	if err != nil {
		c.waits.release(name)
	}
	return err
}

// choose returns a resource and a child of that resource of an MCPServer, and of how many it is chosen; nil if there is none.
func (c *churn) choose(name string, choice uint64) (resource string, child metav1.Object, of int) {
	resources := uint64(len(childrenToDelete))
	resource = childrenToDelete[choice%resources]
	children := c.observer.childrenOf(name, resource)
	if len(children) == 0 {
		return resource, nil, 0
	}
	return resource, children[choice/resources%uint64(len(children))], len(children)
}

// deleteOne deletes a child by hand, and waits for the next of that name.
func (c *churn) deleteOne(ctx context.Context, name string, choice uint64) error {
	resource, child, of := c.choose(name, choice)
	if child == nil || resource == "configmaps" && of > 1 || c.is(c.contested, name) || c.is(c.scaled, name) {
		return errNotNow // A ConfigMap of an earlier spec would not come back, nor would what was done by hand.
	}
	uid, childName := child.GetUID(), child.GetName()
	c.waits.expect(&expectation{what: resource + " " + childName + " is made again", server: name, met: func(seen sighting) bool {
		return seen.resource == resource && seen.name == childName && seen.uid != uid
	}})
	c.dropLabel(childKey{resource, childName})
	background := metav1.DeletePropagationBackground
	err := c.site.metadata.Resource(gvrOf(resource)).Namespace(c.namespace).Delete(ctx, childName, metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil {
		c.waits.release(name)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return errNotNow
	}
	return err
}

// labelOne puts a foreign label on a child.
func (c *churn) labelOne(ctx context.Context, name string, choice uint64) error {
	resource, child, _ := c.choose(name, choice)
	if child == nil {
		return errNotNow
	}
	value := strconv.Itoa(c.count())
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, soakLabel, value)
	labelled, err := c.site.metadata.Resource(gvrOf(resource)).Namespace(c.namespace).Patch(ctx, child.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "bench-foreign"})
	if apierrors.IsNotFound(err) {
		return errNotNow // A ConfigMap of an earlier spec goes some time.
	}
	if err == nil {
		c.noteLabel(childKey{resource, child.GetName()}, foreignLabel{labelled.UID, value})
	}
	return err
}

// toggleScale scales a proxy by hand, from one to two or back.
func (c *churn) toggleScale(ctx context.Context, name string) error {
	c.mu.Lock()
	scaled := !c.scaled[name]
	c.scaled[name] = scaled
	c.mu.Unlock()
	replicas := int32(1)
	if scaled {
		replicas = 2
	}
	return scaleEdit(replicas).apply(ctx, c.site, c.namespace, name)
}

func gvrOf(resource string) schema.GroupVersionResource {
	for _, known := range childGVRs() {
		if known.Resource == resource {
			return known
		}
	}
	panic("no child is of resource " + resource)
}

// is reports whether an MCPServer is contested, or scaled.
func (c *churn) is(which map[string]bool, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return which[name]
}

// count returns a number that no edit has had before.
func (c *churn) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	return c.number
}

func (c *churn) skip() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipped++
}

func (c *churn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

// took notes how long an edit took to be applied.
func (c *churn) took(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.applied != nil {
		*c.applied = append(*c.applied, took)
	}
}

// measureInto lets the times of edits be collected in a list.
func (c *churn) measureInto(times *[]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied = times
}

// failure returns the first errors of operations, if there were any.
func (c *churn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs[:min(len(c.errs), shownViolations)]...)
}

// settleDown waits until each operation has had its effect, or gives up on it.
func (c *churn) settleDown(ctx context.Context, patience time.Duration) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for c.waits.busy() > 0 {
		c.waits.expire(patience)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return c.failure()
}
