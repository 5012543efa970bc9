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

	"k8s.io/apimachinery/pkg/api/meta"
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

// Workers is how many configs are worked on at a time. There are few, and nothing waits for them.
const Workers = 2

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
	config    Config
	Queue     *priorityqueue.Queue[configKey]
	backoff   *priorityqueue.Backoff[configKey]
	pending   pendingSince
	referrers *referrers

	mu sync.Mutex
	// kept has the operator that writes the status and finalizer of each object that was looked at.
	owners map[configKey]ConfigOwner
	// told is the conflict about each object that was last recorded as an event.
	told map[configKey]string
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
	// minBackoffOfConfigs and maxBackoffOfConfigs bound the wait before an object is looked at again that could not be looked at.
	minBackoff = 200 * time.Millisecond
	maxBackoff = apply.LongestWait
	// catchUpCheckOfConfigs is when to look again whether the cache shows our own last write, if no event brings it.
	catchUpCheck = time.Second
)

// New returns a controller whose handlers are added to the caches, which must not have started.
func New(config Config) (*Controller, error) {
	k := &Controller{
		config:  config,
		Queue:   priorityqueue.New[configKey](QueueName, 1, config.Clock),
		backoff: priorityqueue.NewBackoff[configKey](config.Clock, minBackoff, maxBackoff),
		owners:  map[configKey]ConfigOwner{}, told: map[configKey]string{},
	}
	k.referrers = newReferrers(config.Dynamic, config.Servers.Discovery(), k.Queue.Add, k.wakeGroups)
	if err := k.addHandlers(); err != nil {
		return nil, err
	}
	return k, nil
}

// pendingSince remembers since when the API server has not taken the status of an object that MCPServers refer to. What is new in that
// status is new since then: otherwise each pass would have another status, and send it at once although the last one was refused.
type pendingSince struct {
	times sync.Map // apply.ObjectRef -> time.Time
}

func (u *pendingSince) since(ref apply.ObjectRef, now time.Time) time.Time {
	if at, ok := u.times.Load(ref); ok {
		return at.(time.Time)
	}
	return now
}

// note remembers that a status was not written, from the first time on, and forgets it once one is.
func (u *pendingSince) note(ref apply.ObjectRef, written bool, now time.Time) {
	if written {
		u.forget(ref)
		return
	}
	u.times.LoadOrStore(ref, now)
}

func (u *pendingSince) forget(ref apply.ObjectRef) { u.times.Delete(ref) }

// addHandlers makes events wake keys: those of the objects themselves, and those of MCPServers that begin or cease to refer to them.
func (k *Controller) addHandlers() error {
	for _, s := range k.config.Caches.ByNamespace {
		for kind, store := range s.ConfigStores {
			if _, err := store.AddEventHandler(observed.Persistent(observed.OnEvery(func(obj any) {
				if object, err := meta.Accessor(obj); err == nil {
					k.Queue.Add(configKey{kind, cache.MetaObjectToName(object)})
				}
			}))); err != nil {
				return fmt.Errorf("cannot watch %s: %w", kind, err)
			}
		}
		if k.config.Mode == ConfigsToolHive {
			continue
		}
		if _, err := s.ServerStore.AddEventHandler(observed.Persistent(observed.OnNews(refersAlike, func(obj any) {
			if server, ok := obj.(*v1beta1.MCPServer); ok {
				for _, named := range configs.Of(&server.Spec) {
					k.Queue.Add(configKey{named.Kind, cache.NewObjectName(server.Namespace, named.Name)})
				}
			}
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

// wakeGroups wakes the MCPGroups of a scope: it is known now which members they have, or that this cannot be known.
func (k *Controller) wakeGroups(s *observed.Scope) { k.wakeKind(s, configs.Group) }

func (k *Controller) wakeKind(s *observed.Scope, kind string) {
	for name := range observed.NamesIn(s.ConfigStores[kind]) {
		k.Queue.Add(configKey{kind, name})
	}
}

// Shutdown returns when all informers have ended; their context must have been cancelled.
func (k *Controller) Shutdown() { k.referrers.running.Wait() }

// Next takes one key from the queue, see Controller.next. What a pass begins to watch it watches until the second context ends.
func (k *Controller) Next(ctx, watching context.Context) bool {
	key, shutdown := k.Queue.Get()
	if shutdown {
		return false
	}
	defer k.Queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	if !k.config.Caches.Filled(key.Namespace) {
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
	p := &pass{Controller: k, row: managers.ConfigOf(v1beta1.Kind(key.kind)), key: key, scope: k.config.Caches.Scope(key.Namespace)}
	p.ref = apply.NewObjectRef(p.row.GroupKind(), key.Namespace, key.Name)
	live, current, err := k.config.Applier.GetCurrent(p.ref, p.scope.ConfigStores[key.kind].GetStore())
	switch {
	case err != nil:
		return 0, err
	case !current:
		return catchUpCheck, nil
	case live == nil:
		k.forget(p)
		return 0, nil
	}
	p.live = live
	decision := decideOwner(k.config.Mode, live, k.config.Clock.Now())
	p.note(ctx, decision.owner)
	p.inherit, p.again = decision.inherits, decision.wait
	if decision.owner != OwnerFreehold && !decision.contested {
		k.config.Applier.Forget(p.ref)
		p.tellConflict(nil)
		return p.again, nil
	}
	k.referrers.watch(watching, p.scope)
	if decision.contested {
		p.hold(ctx)
		return p.again, nil
	}
	err = p.keep(ctx)
	return p.again, err
}

// forget drops what is kept of an object that is gone.
func (k *Controller) forget(p *pass) {
	k.pending.forget(p.ref)
	k.config.Applier.Forget(p.ref)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.owners, p.key)
	delete(k.told, p.key)
}

// note remembers which operator writes an object's status and finalizer.
func (p *pass) note(ctx context.Context, owner ConfigOwner) {
	p.mu.Lock()
	before, known := p.owners[p.key]
	p.owners[p.key] = owner
	p.mu.Unlock()
	switch log := klog.FromContext(ctx); {
	case !known:
		log.V(2).Info("Found out who writes the status and the finalizer", "owner", owner)
	case before != owner:
		log.Info("Another operator is to write the status and the finalizer", "owner", owner, "before", before)
	}
}

// own writes the finalizer and the status, or gives the finalizer up.
func (p *pass) keep(ctx context.Context) error {
	if p.live.GetDeletionTimestamp() != nil {
		return p.finish(ctx)
	}
	if !p.write(ctx, managers.ConfigFinalizer, apply.Request{Config: p.finalizers(p.row.Finalizer)}) {
		return nil
	}
	p.report(ctx, nil)
	return nil
}

// finish lets an object go once nothing refers to it. An event of the last referrer brings us back here.
func (p *pass) finish(ctx context.Context) error {
	if !slices.Contains(p.live.GetFinalizers(), p.row.Finalizer) {
		return nil
	}
	if !p.row.IsGroup() {
		users := p.users()
		if len(users) == 0 {
			// A cache that is behind would let it go too early.
			var err error
			if users, err = p.listUsers(ctx); err != nil {
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
	if p.write(ctx, managers.ConfigFinalizer, apply.Request{Config: p.finalizers(), Preconditions: apply.Preconditions{LetGo: true}}) {
		klog.FromContext(ctx).V(2).Info("Released the finalizer")
	}
	return nil
}

// report writes the status, except the fields that another field manager owns at other values, and records events about what is
// new in it. users are the objects that keep this one from being deleted.
func (p *pass) report(ctx context.Context, users []string) {
	intent, manager, known := p.statusIntent(users, "")
	if !known {
		return
	}
	req := apply.Request{
		Object: p.ref, Config: intent, Observed: apply.Observed{Live: p.live},
		Ownership: apply.Ownership{Inherit: p.inheritance()}, Preconditions: apply.Preconditions{LetGo: len(users) > 0},
	}
	excluded := p.excludedFrom(ctx, manager, req)
	if excluded.Conflict != nil {
		req.Config, _, _ = p.statusIntent(users, p.describe(excluded.Conflict))
		excluded = p.excludedFrom(ctx, manager, req) // The condition that reports it may be contested itself.
	}
	req.Excluded = excluded
	before := conditionsOf(p.live)
	done := p.write(ctx, manager, req)
	p.pending.note(p.ref, done, p.config.Clock.Now())
	if done {
		p.recordEvents(eventsOf(before, conditionsOf(p.live)))
	}
	if done || excluded.Conflict != nil {
		p.tellConflict(excluded.Conflict)
	}
}

// hold writes nothing, and reports what is contested.
func (p *pass) hold(ctx context.Context) {
	intent, manager, known := p.statusIntent(nil, "")
	if !known {
		return
	}
	excluded := p.excludedFrom(ctx, manager, apply.Request{Object: p.ref, Config: intent, Observed: apply.Observed{Live: p.live}})
	if excluded.Conflict != nil {
		p.config.Applier.Hold(ctx, excluded.Conflict, p.live)
	} else {
		p.config.Applier.Forget(p.ref) // The conflict is over. The cache shows our last write, so none is forgotten that is not seen yet.
	}
	p.tellConflict(excluded.Conflict)
}

// excludedFrom finds the fields that a request to write the status is to leave to others.
func (p *pass) excludedFrom(ctx context.Context, manager string, req apply.Request) *apply.Excluded {
	excluded, err := apply.Exclude(p.writer(manager), req, takeover.WholeCondition)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot tell what others hold of the status")
		return &apply.Excluded{}
	}
	return excluded
}

// write brings the object in line with one intent, and reports whether it is.
func (p *pass) write(ctx context.Context, manager string, req apply.Request) (done bool) {
	req.Object, req.Live, req.Inherit = p.ref, p.live, p.inheritance()
	out := p.config.Applier.Sync(ctx, p.writer(manager), req)
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
	return p.config.Writers.Writers[writers.Key{Manager: manager, Kind: p.ref.Kind}]
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
	return &apply.Inheritance{From: from, Heirs: takeover.Heirs(p.config.Registry.Writers(), p.ref)}
}
