// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/passtrace"
	"github.com/freehold-dev/freehold/pkg/priorityqueue"
	"github.com/freehold-dev/freehold/pkg/turns"
)

const (
	// DrainTimeout is how long a pass that has begun may take once the controller is asked to end. It leaves the rest of the
	// process some of the grace that Kubernetes gives a pod by default.
	DrainTimeout = 20 * time.Second
	// informersTimeout is how long the end waits for informers. They end at once, but for one that waits to list again, up to a minute.
	informersTimeout = time.Second
	// EndTimeout is how long Run may take to return once its context has ended.
	EndTimeout = DrainTimeout + informersTimeout
)

// Controller works for MCPServers.
type Controller struct {
	process
	// syncBackoff says when an MCPServer is looked at again after a pass that could not look at it.
	syncBackoff    *priorityqueue.Backoff[cache.ObjectName]
	configurations *configcontroller.Controller
}

// New returns a controller that has not started to watch.
func New(config Config) (*Controller, error) {
	config.complete()
	registry := managers.Registry()
	clients, err := newClients(registry, config.Core, config.Servers, config.Clock)
	if err != nil {
		return nil, err
	}
	applier := apply.NewApplierWithClock(config.Observer, config.Clock)
	caches, err := observed.NewCaches(config.Core, config.Servers, config.Namespaces, config.Resync,
		&observed.Reducer{Applier: applier, Writers: clients.of, Largest: config.Options.MaxObjectSize}, observed.Selecting(config.Selector), config.Clock)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		process:     process{config: config, caches: caches, clients: clients, applier: applier},
		syncBackoff: priorityqueue.NewBackoff[cache.ObjectName](config.Clock, minBackoff, maxBackoff),
	}
	c.queue = priorityqueue.New(priorityqueue.Config[cache.ObjectName]{
		Name: queueServers, Levels: int(levels), Workers: config.Workers, Clock: config.Clock,
		Group: func(key cache.ObjectName) string { return key.Namespace },
	})
	c.takeovers = turns.New(config.TakeoversAtOnce, config.Clock, c.queue.Add)
	c.configRollouts = turns.New(config.ConfigRolloutsAtOnce, config.Clock, c.queue.Add)
	c.configMaps = observed.NewReferencedConfigMaps(config.Core, c.caches.Scope, c.queue.Add)
	c.configurations, err = configcontroller.New(configcontroller.Config{
		Mode: config.Configs, Caches: caches, Applier: applier, Writers: clients.Clients, Registry: registry,
		Servers: config.Servers, Dynamic: config.Dynamic, Recorder: config.Recorder, Clock: config.Clock,
	})
	if err != nil {
		return nil, err
	}
	c.memories = []func(server cache.ObjectName){c.configMaps.Release, c.takeovers.Release, c.configRollouts.Release, c.forgetRequests, c.states.drop}
	if err := c.addHandlers(); err != nil {
		return nil, err
	}
	return c, nil
}

// Conflicts returns the standing conflicts with other field managers.
func (c *Controller) Conflicts() []*apply.ConflictError { return c.applier.Conflicts() }

// Configs returns how many objects of each kind that MCPServers refer to each operator writes, sorted.
func (c *Controller) Configs() []configcontroller.ConfigCount { return c.configurations.Owners() }

// FailingWatch is a kind that the operator needs and cannot list or watch.
type FailingWatch = observed.FailingWatch

// FailingWatches is observed.Caches.FailingWatches.
func (c *Controller) FailingWatches() []FailingWatch {
	return c.caches.FailingWatches(c.config.Clock.Now())
}

// WatchedKinds returns the kinds that FailingWatches may return, sorted.
func WatchedKinds() []string {
	kinds := observed.RequiredKinds()
	for _, config := range managers.Configs() {
		kinds = append(kinds, config.Kind)
	}
	for _, kind := range configcontroller.Referrers() {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Takeovers returns how many MCPServers of ToolHive are being taken over, wait for that, or make no progress.
func (c *Controller) Takeovers() turns.Counts { return c.takeovers.Count() }

// OnDeleteBackends returns the StatefulSets of MCPServers whose pods Kubernetes does not replace by itself.
func (c *Controller) OnDeleteBackends() []types.NamespacedName { return c.states.onDeleteSets() }

// Queues returns how long the key of each workqueue has waited that has waited longest.
func (c *Controller) Queues() []Queue {
	return []Queue{{queueServers, c.queue.OldestWait()}, {configcontroller.QueueName, c.configurations.Queue.OldestWait()}}
}

// Rollouts returns how far those of all MCPServers have come, as they were looked at last.
func (c *Controller) Rollouts() []Rollout { return c.states.rollouts() }

// Run watches and reconciles until the context ends, and returns when everything that it started has ended, but for informers that wait
// to list again and then end. The error says why it could not start. A controller runs once.
func (c *Controller) Run(ctx context.Context) error {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	// Informers end after the workers, which read from them.
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	shutDownQueues := func() {
		c.queue.ShutDown()
		c.configurations.Queue.ShutDown()
	}
	var workers sync.WaitGroup
	defer func() {
		shutDownQueues()
		workers.Wait()
		stopWatching()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.configurations.Shutdown()
			c.configMaps.Shutdown()
			c.caches.Shutdown()
		}()
		select {
		case <-ended:
		case <-time.After(informersTimeout): // They only read.
		}
		logger.Info("Controller has ended")
	}()
	defer context.AfterFunc(ctx, func() {
		shutDownQueues()
		time.AfterFunc(DrainTimeout, stopWatching)
	})()

	logger.Info("Filling caches", "namespaces", c.config.Namespaces)
	filling, cancel := context.WithCancel(watching)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	if err := c.caches.Start(watching, filling, c.wake, func(s *observed.Scope) { c.begin(logger, s) }); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	logger.Info("Working", "workers", c.config.Workers)
	for range c.config.Workers {
		workers.Go(func() {
			for c.next(ctx, watching) {
			}
		})
	}
	for range configcontroller.Workers {
		workers.Go(func() {
			for c.configurations.Next(ctx, watching) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// begin lets passes over the objects of a namespace begin, whose caches are filled. Until then no event wakes a key.
func (c *Controller) begin(logger klog.Logger, s *observed.Scope) {
	resumeTakeovers(&c.process, s)
	resumeConfigRollouts(&c.process, s)
	s.Filled.Store(true)
	logger.Info("Filled the caches", "namespace", s.Namespace)
	for name := range observed.NamesIn(s.ServerStore) {
		if server := c.caches.Server(name); server != nil {
			c.queue.AddAt(name, levelOfUnseen(server))
		}
	}
	c.configurations.WakeAll(s)
}

// next takes one key from the queue. A sync that has begun is finished even when the context has ended
// meanwhile, but not for longer than DrainTimeout; keys that still wait then are left to the next leader.
func (c *Controller) next(ctx, watching context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if ctx.Err() != nil {
		return false // a queue that is shut down still hands out what it holds
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "MCPServer", key)
	again := retryBackoff
	ctx = klog.NewContext(watching, logger)
	if observed.Survive(ctx, nil, func() error {
		ctx, end := passtrace.Begin(ctx, c.config.Tracer, key)
		defer end()
		again = c.sync(ctx, key)
		return nil
	}) != nil {
		c.takeovers.Release(key) // The passes of others have their turns.
		c.configRollouts.Release(key)
	}
	switch again {
	case retryBackoff:
		c.queue.AddAfter(key, c.syncBackoff.Next(key))
	case retryCatchUp:
		c.queue.Again(key)
		c.queue.AddAfter(key, catchUpCheck)
	default:
		c.syncBackoff.Forget(key)
	}
	return true
}

// addHandlers makes events wake keys.
func (c *Controller) addHandlers() error {
	for _, s := range c.caches.ByNamespace {
		servers := c.handler(managers.MCPServer, s.ServerStore.GetStore(), func(obj metav1.Object, to priorityqueue.Level) {
			c.queue.AddAt(cache.MetaObjectToName(obj), to)
		})
		if _, err := s.ServerStore.AddEventHandler(observed.Persistent(cache.FilteringResourceEventHandler{FilterFunc: c.caches.IsSelected, Handler: servers})); err != nil {
			return fmt.Errorf("cannot watch MCPServers: %w", err)
		}
		if err := s.WatchConfigs(c.wake); err != nil {
			return fmt.Errorf("cannot watch what MCPServers refer to: %w", err)
		}
		if err := s.WatchPods(c.wake); err != nil {
			return fmt.Errorf("cannot watch pods: %w", err)
		}
		for key, store := range s.ChildStores {
			kind := key.Kind
			if _, err := store.AddEventHandler(observed.Persistent(c.handler(kind, store.GetStore(), func(obj metav1.Object, to priorityqueue.Level) {
				c.wakeParents(kind, obj, to)
			}))); err != nil {
				return fmt.Errorf("cannot watch %s: %w", kind, err)
			}
		}
	}
	return nil
}

// wake queues an MCPServer, if it is this operator's.
func (c *Controller) wake(key cache.ObjectName) {
	if c.caches.Filled(key.Namespace) && c.caches.Serves(key) {
		c.queue.Add(key)
	}
}

// handler wakes MCPServers for every event of a kind that a store shows. An edit of an object that the store has shown before is
// urgent, and so is the end of a child.
func (c *Controller) handler(kind schema.GroupKind, store cache.Store, wake func(obj metav1.Object, to priorityqueue.Level)) cache.ResourceEventHandler {
	seen := func(obj any, to priorityqueue.Level) {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return
		}
		// The next pass would see the version as well. That may take long when thousands of objects are created at once, and until
		// then their versions would be remembered. The same kind may have another store, into which passes do not look.
		if ref := apply.NewObjectRef(kind, accessor.GetNamespace(), accessor.GetName()); c.caches.Store(ref) == store {
			c.applier.WriteTracker().Seen(ref, accessor.GetResourceVersion())
		}
		if c.caches.Filled(accessor.GetNamespace()) { // Otherwise begin wakes the MCPServer.
			wake(accessor, to)
		}
	}
	handler := observed.OnEvery(func(obj any) { seen(obj, levelOthers) })
	handler.AddFunc = func(obj any) { seen(obj, levelOfUnseen(obj)) }
	handler.UpdateFunc = func(before, now any) { seen(now, levelOf(kind, now, before)) }
	if kind != managers.MCPServer {
		handler.DeleteFunc = func(obj any) { seen(observed.LastKnown(obj), levelEdits) }
	}
	return handler
}

// wakeParents wakes the MCPServers of which an object of that name is a child, or in the way of one. What has become of the child
// of a predecessor is not urgent.
func (c *Controller) wakeParents(kind schema.GroupKind, obj metav1.Object, to priorityqueue.Level) {
	for _, name := range inventory.Servers(kind, obj.GetName()) {
		key := cache.NewObjectName(obj.GetNamespace(), name)
		if c.caches.Serves(key) {
			c.queue.AddAt(key, max(to, levelOfParent(obj, c.caches.Server(key))))
		}
	}
}
