// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
)

// TestMain fails when a test leaves a goroutine behind.
func TestMain(m *testing.M) {
	// The second handler makes sure that there is a while between two errors. It knows the time of the first from the
	// real clock, and a goroutine in a bubble would wait until the clock of the bubble has come there.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // it is there to be set
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// bubbleStart is when the clock of a synctest bubble starts.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// operating is a controller that runs in a synctest bubble. Nothing in it depends on how fast the machine is:
// time passes only when every goroutine waits.
type operating struct {
	*Controller
	*apiServer
	events *recorder
	stop   context.CancelFunc
	ended  chan error
}

// operate runs test in a bubble, with a controller for the objects that there are.
func operate(t *testing.T, objects []runtime.Object, configure func(*Config), test func(t *testing.T, o *operating)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, objects...)
		o := start(t, s, configure)
		defer o.end()
		o.rest()
		test(t, o)
	})
}

// start starts a controller on a server that may have been there before.
func start(t *testing.T, s *apiServer, configure func(*Config)) *operating {
	t.Helper()
	o := &operating{apiServer: s, events: &recorder{}, ended: make(chan error, 1)}
	// Tests of what an MCPServer's children are made from do not count writes to what it refers to.
	config := Config{Core: s.core, Servers: s.servers, Recorder: o.events, Workers: 2, Configs: configcontroller.ConfigsToolHive}
	if configure != nil {
		configure(&config)
	}
	var err error
	if o.Controller, err = New(config); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(2)))))
	o.stop = stop
	go func() { o.ended <- o.Run(ctx) }()
	return o
}

// rest returns when the controller has nothing more to do than to wait for an event, or for longer than a while.
func (o *operating) rest() {
	const aWhile = 3 * time.Second // longer than the checks that follow a write
	<-time.After(aWhile)
	synctest.Wait()
}

// forbidApplies keeps the operator from applying anything until allow is called.
func (o *operating) forbidApplies() (allow func()) {
	var allowed atomic.Bool
	o.before.set(func(w write) error {
		if !allowed.Load() && w.verb == "apply" {
			return apierrors.NewForbidden(schema.GroupResource{}, w.name, errors.New("not now"))
		}
		return nil
	})
	return func() { allowed.Store(true) }
}

// end stops the controller and waits for it. That it leaves no goroutine behind is for the bubble to tell.
func (o *operating) end() {
	o.t.Helper()
	o.stop()
	if err := <-o.ended; err != nil {
		o.t.Errorf("the controller ended with %v", err)
	}
}

func (o *operating) server(name string) *v1beta1.MCPServer {
	o.t.Helper()
	server, ok := get[*v1beta1.MCPServer](o.apiServer, name)
	if !ok {
		o.t.Fatalf("MCPServer %s does not exist", name)
	}
	return server
}

// recorder is an events.EventRecorder.
type recorder struct {
	mu   sync.Mutex
	told []string
}

func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := cache.MetaObjectToName(access(regarding)).String()
	r.told = append(r.told, fmt.Sprintf("%s %s %s %s: %s", name, eventType, reason, action, unworded(fmt.Sprintf(note, args...))))
}

// heard returns the events since it was asked last.
func (r *recorder) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	return told
}
