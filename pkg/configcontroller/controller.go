// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configcontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// Workers is how many configs are worked on at a time, half of them of one namespace. There are few, and nothing waits for them.
const Workers = 4

// QueueName is the workqueue, as metrics name it.
const QueueName = "config"

// listAgain is when to list again the objects that keep one from being deleted and that no cache shows.
const listAgain = time.Minute

// configKey names an object that MCPServers refer to.
type configKey struct {
	kind string
	cache.ObjectName
}

// Controller validates the objects that MCPServers refer to, lists the members of groups, and writes the status and the finalizer
// of both. It has its own queue and works on one object at a time: the status of such an object depends on no MCPServer's children.
type Controller struct {
	Config

	Queue   *priorityqueue.Queue[configKey]
	backoff *priorityqueue.Backoff[configKey]
	// running are the informers of referrers.
	running sync.WaitGroup

	// mu guards the maps, and the owners in the states, which metrics read. A state is otherwise its worker's.
	mu     sync.Mutex
	states map[configKey]*configState
	// referrers are the caches of referrerKinds. A scope without any is not in the map.
	referrers map[*observed.Scope][]*referrerStore
}

// configState is what the process remembers of one object. It is dropped when the object goes.
type configState struct {
	// owner is the operator that writes the status and the finalizer; empty before the first pass.
	owner ConfigOwner
	// conflict is the text of the event that reported a conflict last; empty when there is none.
	conflict string
	// pending are the conditions that the API server did not accept. When they are computed again they keep their transition times:
	// otherwise each pass would have another status, and send it at once although the last one was refused.
	pending []metav1.Condition
}

// Config is what the controller of configurations works with, besides a queue of its own.
type Config struct {
	// Mode says which operator writes the status and the finalizer of the objects.
	Mode     ConfigsMode
	Caches   *observed.Caches
	Applier  *apply.Applier
	Writers  *writers.Clients
	Registry *fieldmanager.Registry
	// Servers is the client for MCPServers.
	Servers versioned.Interface
	// Dynamic is the client for kinds of ToolHive that Freehold only counts, such as VirtualMCPServers; nil counts none.
	Dynamic dynamic.Interface
	// Recorder takes events; nil drops them.
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
}

const (
	// minBackoff and maxBackoff bound the wait before an object is looked at again that could not be looked at.
	minBackoff = 200 * time.Millisecond
	maxBackoff = apply.LongestWait
	// catchUpCheck is when to look again whether the cache shows our own last write, if no event brings it.
	catchUpCheck = time.Second
)

// New returns a controller whose handlers are added to the caches, which must not have started.
func New(config Config) (*Controller, error) {
	k := &Controller{
		Config: config,
		Queue: priorityqueue.New(priorityqueue.Config[configKey]{
			Name: QueueName, Levels: 1, Workers: Workers, Clock: config.Clock,
			Group: func(key configKey) string { return key.Namespace },
		}),
		backoff: priorityqueue.NewBackoff[configKey](config.Clock, minBackoff, maxBackoff),
		states:  map[configKey]*configState{}, referrers: map[*observed.Scope][]*referrerStore{},
	}
	if err := k.addHandlers(); err != nil {
		return nil, err
	}
	return k, nil
}

// addHandlers makes events wake keys: those of the objects themselves, and those of MCPServers that begin or cease to refer to them.
func (k *Controller) addHandlers() error {
	for _, s := range k.Caches.ByNamespace {
		for kind, store := range s.ConfigStores {
			if _, err := store.AddEventHandler(observed.Persistent(observed.OnEvery(func(obj any) {
				if object, ok := obj.(metav1.Object); ok {
					k.Queue.Add(configKey{kind, cache.MetaObjectToName(object)})
				}
			}))); err != nil {
				return fmt.Errorf("cannot watch %s: %w", kind, err)
			}
		}
		if k.Mode == ConfigsToolHive {
			continue
		}
		if _, err := s.ServerStore.AddEventHandler(observed.Persistent(observed.OnChange(refersAlike, func(server *v1beta1.MCPServer) {
			k.wakeNamed(server.Namespace, configs.Of(&server.Spec))
		}))); err != nil {
			return fmt.Errorf("cannot watch MCPServers: %w", err)
		}
	}
	return nil
}

// refersAlike reports whether an MCPServer counts for the same objects as before.
func refersAlike(now, before *v1beta1.MCPServer) bool {
	return (now.DeletionTimestamp == nil) == (before.DeletionTimestamp == nil) && slices.Equal(configs.Of(&now.Spec), configs.Of(&before.Spec))
}

// WakeAll wakes the objects of a scope: its MCPServers and their children are known now.
func (k *Controller) WakeAll(s *observed.Scope) {
	for kind := range s.ConfigStores {
		k.wakeKind(s, kind)
	}
}

func (k *Controller) wakeKind(s *observed.Scope, kind string) {
	for name := range observed.NamesIn(s.ConfigStores[kind]) {
		k.Queue.Add(configKey{kind, name})
	}
}

func (k *Controller) wakeNamed(namespace string, all []configs.Named) {
	for _, named := range all {
		k.Queue.Add(configKey{named.Kind, cache.NewObjectName(namespace, named.Name)})
	}
}

// Shutdown returns when all informers have ended; their context must have been cancelled.
func (k *Controller) Shutdown() { k.running.Wait() }

// Next takes one key from the queue, and reports whether there may be more. What a pass begins to watch it watches until the second
// context ends.
func (k *Controller) Next(ctx, watching context.Context) bool {
	key, shutdown := k.Queue.Get()
	if shutdown {
		return false
	}
	defer k.Queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	if !k.Caches.Filled(key.Namespace) {
		return true // begin wakes it
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "kind", key.kind, "object", key.ObjectName)
	var again time.Duration
	ctx = klog.NewContext(watching, logger)
	if err := observed.Survive(ctx, nil, func() (err error) { again, err = k.sync(ctx, watching, key); return err }); err != nil {
		logger.Error(err, "Cannot look at what MCPServers refer to")
		again = priorityqueue.Sooner(again, k.backoff.Next(key))
	} else {
		k.backoff.Forget(key)
	}
	if again > 0 {
		k.Queue.AddAfter(key, again)
	}
	return true
}

// pass is one look at an object that MCPServers refer to.
type pass struct {
	*Controller

	row   *managers.Config
	key   configKey
	ref   apply.ObjectRef
	scope *observed.Scope
	state *configState
	// live is the object as it was seen, or as the last write has left it.
	live metav1.Object
	// inherit is set when ToolHive's claims pass to us.
	inherit bool
	// again is when to look again; 0 for when there is an event.
	again time.Duration
}

// sync reconciles one object. It returns an error when it could not find out the object's state; again is when to look
// again, 0 for when there is an event.
func (k *Controller) sync(ctx, watching context.Context, key configKey) (again time.Duration, err error) {
	p := &pass{Controller: k, row: managers.ConfigOf(v1beta1.Kind(key.kind)), key: key, scope: k.Caches.Scope(key.Namespace)}
	p.ref = apply.NewObjectRef(p.row.GroupKind(), key.Namespace, key.Name)
	live, current, err := k.Applier.GetCurrent(p.ref, p.scope.ConfigStores[key.kind].GetStore())
	switch {
	case err != nil:
		return 0, err
	case !current:
		return catchUpCheck, nil
	case live == nil:
		k.Applier.Forget(p.ref)
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.states, key)
		return 0, nil
	}
	decision := decideOwner(k.Mode, live, k.Clock.Now(), k.seesToolHive)
	p.live, p.inherit, p.again = live, decision.inherits, decision.wait
	p.state = k.noteOwner(ctx, key, decision.owner)
	if decision.owner != OwnerFreehold && !decision.contested {
		k.Applier.Forget(p.ref)
		p.tellConflict(nil)
		return p.again, nil
	}
	k.watchReferrers(watching, p.scope)
	if decision.contested {
		p.hold(ctx)
		return p.again, nil
	}
	err = p.write(ctx)
	return p.again, err
}

// noteOwner remembers which operator writes an object's status and finalizer, and returns the object's state.
func (k *Controller) noteOwner(ctx context.Context, key configKey, owner ConfigOwner) *configState {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.states[key] == nil {
		k.states[key] = &configState{}
	}
	state := k.states[key]
	switch log := klog.FromContext(ctx); {
	case state.owner == "":
		log.V(2).Info("Found out who writes the status and the finalizer", "owner", owner)
	case state.owner != owner:
		log.Info("Another operator is to write the status and the finalizer", "owner", owner, "before", state.owner)
	}
	state.owner = owner
	return state
}

// write writes the finalizer and the status, or gives the finalizer up.
func (p *pass) write(ctx context.Context) error {
	if p.live.GetDeletionTimestamp() != nil {
		return p.finish(ctx)
	}
	if p.apply(ctx, p.writer(managers.ConfigFinalizer), apply.Request{Config: p.finalizers(p.row.Finalizer)}) {
		p.report(ctx, nil)
	}
	return nil
}

// finish lets an object go once nothing refers to it. An event of the last referrer brings us back here.
func (p *pass) finish(ctx context.Context) error {
	if !slices.Contains(p.live.GetFinalizers(), p.row.Finalizer) {
		return nil
	}
	if !p.row.IsGroup() {
		users := p.referring()
		if len(users) == 0 {
			// A cache that is behind would let it go too early.
			var err error
			if users, err = p.listReferring(ctx); err != nil {
				return fmt.Errorf("cannot find out what refers to an object that is being deleted: %w", err)
			}
			if len(users) > 0 {
				p.again = priorityqueue.Sooner(p.again, listAgain) // There may be no informer of what the list shows.
			}
		}
		if len(users) > 0 {
			p.report(ctx, users)
			return nil
		}
	}
	if p.apply(ctx, p.writer(managers.ConfigFinalizer), apply.Request{Config: p.finalizers(), Preconditions: apply.Preconditions{LetGo: true}}) {
		klog.FromContext(ctx).V(2).Info("Released the finalizer")
	}
	return nil
}

// apply brings the object in line with one intent, and reports whether it is.
func (p *pass) apply(ctx context.Context, w apply.Writer, req apply.Request) (done bool) {
	req.Object, req.Live, req.Inherit = p.ref, p.live, p.inheritance()
	defer p.Caches.Large.Take(p.live)()
	out := p.Applier.Sync(ctx, w, req)
	if out.Wrote() {
		p.live = out.Live
	}
	p.again = priorityqueue.Sooner(p.again, out.RetryAfter)
	if conflict, ok := errors.AsType[*apply.ConflictError](out.Err); ok {
		p.tellConflict(conflict)
	}
	return out.Err == nil
}

func (p *pass) writer(manager string) apply.Writer {
	return p.Writers.Writers[writers.Key{Manager: manager, Kind: p.ref.Kind}]
}

// inheritance passes to our writers, in one edit, the claims of ToolHive where these pass, and those that an interrupted handback has
// left with the plugin; nil for nothing.
func (p *pass) inheritance() *apply.Inheritance {
	from := func(owner ownership.Owner) bool {
		return takeover.FromPlugin(owner) || p.inherit && takeover.FromToolHive(owner)
	}
	if !slices.ContainsFunc(p.live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return from(ownership.OwnerOf(&e)) }) {
		return nil
	}
	return &apply.Inheritance{From: from, Heirs: takeover.Heirs(p.Registry.Writers(), p.ref)}
}
