// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/metrics"
)

// component is the operator's name in events and in the User-Agent.
const component = "freehold"

// operate runs the operator until the context ends.
func operate(ctx context.Context, o *options) error {
	config, err := restConfig(o)
	if err != nil {
		return err
	}
	tracer, flushTraces, err := startTracing(ctx, o, config)
	if err != nil {
		return err
	}
	defer flushTraces()
	selector, err := o.selected()
	if err != nil {
		return err
	}
	writes := &fence{}
	config.Wrap(writes.wrap)
	core, servers, others, err := newClients(config)
	if err != nil {
		return err
	}
	leases, err := leaseClient(config)
	if err != nil {
		return err
	}
	openshift, err := o.rendering.IsOpenShift(core.Discovery().ServerGroups)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).V(2).Info("Detected the platform", "openshift", openshift)
	recorder, stopRecording := startRecorder(ctx, &events.EventSinkImpl{Interface: core.EventsV1()})
	defer stopRecording()
	c, err := controller.New(controller.Config{
		Core:       core,
		Servers:    servers,
		Dynamic:    others,
		Recorder:   recorder,
		Observer:   metrics.NewOutcomes(),
		Tracer:     tracer,
		Options:    o.rendering.Options(openshift),
		Namespaces: o.namespaces,
		Selector:   selector,
		Workers:    o.workers,
		Resync:     o.resync,
		Takeover:   controller.TakeoverMode(o.takeover), TakeoversAtOnce: o.takeovers, ConfigRolloutsAtOnce: o.configRollouts,
		Configs: configcontroller.ConfigsMode(o.configs),
	})
	if err != nil {
		return err
	}

	metrics.SetSource(c)

	group, ctx := errgroup.WithContext(ctx)
	lease := leaderelection.NewLeaderHealthzAdaptor(o.leaseDuration)
	if err := serveEndpoints(ctx, group, o, lease.Check, core); err != nil {
		return err
	}
	group.Go(func() error {
		if !o.leaderElect {
			return c.Run(ctx)
		}
		return lead(ctx, o, leases, lease, writes, c.Run)
	})
	return group.Wait()
}

func restConfig(o *options) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("no access to a cluster: %w; give --kubeconfig outside a pod", err)
	}
	// The API server's priority and fairness does the limiting, unless the user wants another limit. That is one for all clients.
	config.QPS = -1
	if o.qps > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(o.qps, cmp.Or(o.burst, max(1, int(o.qps))))
	}
	// The API server is near; to inflate its lists would take a good part of the CPU of a start.
	config.DisableCompression = true
	config.UserAgent = fmt.Sprintf("%s/%s", component, version.Get().GitVersion)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return nameWriter{next} })
	config.Wrap(apply.Transport)
	config.Wrap(apply.OwnWaits)
	config.Wrap(apply.Deadline)
	return config, nil
}

// nameWriter adds the field manager to the User-Agent, so that audit log and managedFields name a writer alike.
type nameWriter struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n nameWriter) RoundTrip(request *http.Request) (*http.Response, error) {
	if manager := request.URL.Query().Get("fieldManager"); manager != "" {
		request = request.Clone(request.Context())
		request.Header.Set("User-Agent", request.UserAgent()+" "+manager)
	}
	return n.next.RoundTrip(request)
}

// leaseClient returns the client of the lease, which waits for no other request: an operator that cannot renew its lease stops.
func leaseClient(config *rest.Config) (kubernetes.Interface, error) {
	unlimited := rest.CopyConfig(config)
	unlimited.RateLimiter = nil
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("no client for the lease: %w", err)
	}
	return client, nil
}

func newClients(config *rest.Config) (kubernetes.Interface, versioned.Interface, dynamic.Interface, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("cannot connect: %w", err)
	}
	builtin := rest.CopyConfig(config)
	builtin.ContentType = runtime.ContentTypeProtobuf
	builtin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfigAndClient(builtin, client)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("no client for Kubernetes: %w", err)
	}
	servers, err := versioned.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("no client for MCPServers: %w", err)
	}
	others, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("no client for what refers to configurations: %w", err)
	}
	return core, servers, others, nil
}
