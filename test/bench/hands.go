// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveinformers "github.com/freehold-dev/freehold/generated/informers/externalversions"
)

const (
	// handEdits is how many Deployments are edited by hand at once, or all if there are fewer.
	handEdits = 50
	// hand is the field manager of whoever edits by hand.
	hand = "kubectl-edit"
	// handImage is what the image of a proxy becomes.
	handImage = "example.com/by-hand:1"
	// byHand is the namespace of MCPServers with transport stdio, which are scaled by hand.
	byHand = "by-hand"
)

// answers are what an operator did after edits by hand, and how long each answer took.
type answers struct {
	Stage stage
	// Named and Undone are how many of the edits were reported as a conflict, and overwritten.
	Named, Undone int
	// Times are those from before an edit is sent until a watch shows the answer, sorted.
	Times []time.Duration
}

// handEdit is an edit of Deployments by another client than the operator.
type handEdit struct {
	// patch is a JSON patch, of the subresource if that is not empty.
	patch, subresource string
	// is reports whether a Deployment is as the edit leaves it.
	is func(*appsv1.Deployment) bool
}

// imageEdit changes the image of proxies.
func imageEdit(image string) handEdit {
	return handEdit{
		patch: fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image),
		is: func(d *appsv1.Deployment) bool {
			return len(d.Spec.Template.Spec.Containers) > 0 && d.Spec.Template.Spec.Containers[0].Image == image
		},
	}
}

// scaleEdit sets the number of proxies.
func scaleEdit(replicas int32) handEdit {
	return handEdit{
		subresource: "scale",
		patch:       fmt.Sprintf(`[{"op":"replace","path":"/spec/replicas","value":%d}]`, replicas),
		is:          func(d *appsv1.Deployment) bool { return d.Spec.Replicas != nil && *d.Spec.Replicas == replicas },
	}
}

func (e handEdit) apply(ctx context.Context, s *site, namespace, name string) error {
	var subresources []string
	if e.subresource != "" {
		subresources = append(subresources, e.subresource)
	}
	_, err := s.core.AppsV1().Deployments(namespace).Patch(ctx, name, types.JSONPatchType, []byte(e.patch),
		metav1.PatchOptions{FieldManager: hand}, subresources...)
	return err
}

// replies notes when edits are answered, from what watches show.
type replies struct {
	mu sync.Mutex
	// sent is when each edit was sent; edited are those that a watch has shown.
	sent   map[string]time.Time
	edited map[string]bool
	took   map[string]time.Duration
	// named and undone count the answers by what they were.
	named, undone int
}

func newReplies() *replies {
	return &replies{sent: map[string]time.Time{}, edited: map[string]bool{}, took: map[string]time.Duration{}}
}

// send notes that an edit is sent.
func (r *replies) send(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[name] = time.Now()
}

// showDeployment takes what a watch shows of an edited Deployment: the edit, or that it is undone.
func (r *replies) showDeployment(name string, edited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case edited:
		r.edited[name] = true
	case r.edited[name] && r.answer(name):
		r.undone++
	}
}

// showServer takes what a watch shows of an MCPServer.
func (r *replies) showServer(name string, conflict bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if conflict && r.answer(name) {
		r.named++
	}
}

// answer notes the first answer to an edit.
func (r *replies) answer(name string) bool {
	sent, waits := r.sent[name]
	if _, answered := r.took[name]; !waits || answered {
		return false
	}
	r.took[name] = time.Since(sent)
	return true
}

// answered is how many edits are answered.
func (r *replies) answered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.took)
}

// wait returns when all edits are answered.
func (r *replies) wait(ctx context.Context, edits int) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for r.answered() < edits {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d edits by hand are answered: %w", r.answered(), edits, context.Cause(ctx))
		case <-ticker.C:
		}
	}
	return nil
}

// namesConflict reports whether an MCPServer tells of a conflict.
func namesConflict(server *v1beta1.MCPServer) bool {
	return meta.IsStatusConditionFalse(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
}

// watchReplies shows Deployments and MCPServers to replies, until end is called.
func (s *site) watchReplies(ctx context.Context, p places, edit handEdit, r *replies) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	core := informers.NewSharedInformerFactoryWithOptions(s.core, 0, informers.WithNamespace(p.watched()))
	toolhive := toolhiveinformers.NewSharedInformerFactoryWithOptions(s.servers, 0, toolhiveinformers.WithNamespace(p.watched()))
	end = func() {
		cancel()
		core.Shutdown()
		toolhive.Shutdown()
	}
	deployments, err := core.Apps().V1().Deployments().Informer().AddEventHandler(p.handler(onSight(func(obj any) {
		if d, ok := obj.(*appsv1.Deployment); ok {
			r.showDeployment(d.Name, edit.is(d))
		}
	})))
	if err != nil {
		end()
		return nil, err
	}
	servers, err := toolhive.Toolhive().V1beta1().MCPServers().Informer().AddEventHandler(p.handler(onSight(func(obj any) {
		if server, ok := obj.(*v1beta1.MCPServer); ok {
			r.showServer(server.Name, namesConflict(server))
		}
	})))
	if err != nil {
		end()
		return nil, err
	}
	core.Start(ctx.Done())
	toolhive.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), deployments.HasSynced, servers.HasSynced) {
		end()
		return nil, fmt.Errorf("the watches of %s did not start: %w", p.name, context.Cause(ctx))
	}
	return end, nil
}

// byHand edits some Deployments all at once, and waits until each edit is answered: reported as a conflict, or undone.
func (s *site) byHand(ctx context.Context, p places, edit handEdit) (done answers, err error) {
	r := newReplies()
	end, err := s.watchReplies(ctx, p, edit, r)
	if err != nil {
		return done, err
	}
	defer end()
	if err := s.editAll(ctx, p, edit, r.send); err != nil {
		return done, err
	}
	if err := r.wait(ctx, len(p.some())); err != nil {
		return done, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, took := range r.took {
		done.Times = append(done.Times, took)
	}
	slices.Sort(done.Times)
	done.Named, done.Undone = r.named, r.undone
	return done, nil
}

// editAll edits some Deployments all at once. Before each edit it calls sending.
func (s *site) editAll(ctx context.Context, p places, edit handEdit, sending func(name string)) error {
	group, editing := errgroup.WithContext(ctx)
	for _, i := range p.some() {
		group.Go(func() error {
			sending(serverName(i))
			return edit.apply(editing, s, p.namespaceOf(i), serverName(i))
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("cannot edit the Deployments: %w", err)
	}
	return nil
}

// images edits the image of proxies by hand and waits for the answers. Then the hand takes its edits back.
func (o *subject) images(ctx context.Context, p places) (answers, error) {
	before, err := o.site.core.AppsV1().Deployments(p.namespaceOf(0)).Get(ctx, serverName(0), metav1.GetOptions{})
	if err != nil {
		return answers{}, err
	}
	done, err := o.answered(ctx, p, imageEdit(handImage))
	if err != nil {
		return done, err
	}
	return done, o.settled(ctx, len(p.some()), func(ctx context.Context) error {
		back := imageEdit(before.Spec.Template.Spec.Containers[0].Image)
		return o.site.editAll(ctx, p, back, func(string) {})
	})
}

// scales makes MCPServers with transport stdio, which have one proxy and no more, and scales their proxies by hand.
func (o *subject) scales(ctx context.Context, n int) (answers, error) {
	p := places{name: byHand, servers: n}
	l := load{places: p, transport: v1beta1.TransportStdio, children: noNames}
	if _, err := o.site.converge(ctx, l, serversReady); err != nil {
		return answers{}, err
	}
	if _, err := o.quiet(ctx); err != nil {
		return answers{}, err
	}
	return o.answered(ctx, p, scaleEdit(2))
}

// noNames is for a load whose children nobody waits for.
func noNames([]*v1beta1.MCPServer) ([]string, error) { return nil, nil }

// answered edits by hand, and observes the operator until it has answered and is at rest.
func (o *subject) answered(ctx context.Context, p places, edit handEdit) (done answers, err error) {
	observed, err := o.observe(ctx, func(ctx context.Context) error {
		return o.settled(ctx, len(p.some()), func(ctx context.Context) (err error) {
			done, err = o.site.byHand(ctx, p, edit)
			return err
		})
	})
	done.Stage = observed
	return done, err
}
