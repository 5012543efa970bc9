// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clientmetrics "k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/freehold-dev/freehold/pkg/metrics"
)

// gather returns what the registry tells once everything that the operator is made of has been used: metrics with
// labels appear with their first use.
func gather(ctx context.Context) ([]*dto.MetricFamily, error) {
	metrics.NewOutcomes()
	useClient(ctx)
	useQueue()
	if err := useLease(ctx); err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	return legacyregistry.DefaultGatherer.Gather()
}

// useClient does what client-go does around a request.
func useClient(ctx context.Context) {
	const host, verb, code = "kubernetes.default.svc", "PATCH", "200"
	clientmetrics.EnsureRegistered()
	target := url.URL{Scheme: "https", Host: host}
	clientmetrics.RequestLatency.Observe(ctx, verb, target, time.Millisecond)
	clientmetrics.RateLimiterLatency.Observe(ctx, verb, target, 0)
	clientmetrics.RequestSize.Observe(ctx, verb, host, 1)
	clientmetrics.ResponseSize.Observe(ctx, verb, host, 1)
	clientmetrics.RequestResult.Increment(ctx, code, verb, host)
	clientmetrics.RequestRetry.IncrementRetry(ctx, code, verb, host)
	clientmetrics.TransportCacheEntries.Observe(1)
	clientmetrics.TransportCreateCalls.Increment("miss")
	clientmetrics.TransportCAReloads.Increment("success", "ca_rotated")
	clientmetrics.TransportCertRotationGCCalls.Increment()
	clientmetrics.TransportCacheGCCalls.Increment("deleted")
}

// useQueue works on one key.
func useQueue() {
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: "mcpserver"})
	defer queue.ShutDown()
	queue.Add("key")
	key, _ := queue.Get()
	queue.Done(key)
	queue.AddAfter(key, time.Hour)
}

// useLease leads until the lease has been renewed the slow way once.
func useLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	renewed := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: "freehold", Lock: &memoryLock{renewed: renewed},
		LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 10 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	select {
	case <-renewed:
	case <-ctx.Done():
		err = errors.New("the lease was not renewed within a minute")
	}
	cancel()
	<-ended
	return err
}

// memoryLock is a lease in memory. Its first renewal meets a lease that somebody else has touched.
type memoryLock struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	updates int
	renewed chan struct{}
}

var _ resourcelock.Interface = &memoryLock{}

// Get implements resourcelock.Interface.
func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "freehold")
	}
	record := *l.record
	return &record, []byte(record.HolderIdentity), nil
}

// Create implements resourcelock.Interface.
func (l *memoryLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = &record
	return nil
}

// Update implements resourcelock.Interface.
func (l *memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.updates++
	switch l.updates {
	case 1:
		return apierrors.NewConflict(coordinationv1.Resource("leases"), "freehold", errors.New("it has changed"))
	case 2:
		close(l.renewed)
	}
	l.record = &record
	return nil
}

// RecordEvent implements resourcelock.Interface.
func (*memoryLock) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (*memoryLock) Identity() string { return "metricslist" }

// Describe implements resourcelock.Interface.
func (*memoryLock) Describe() string { return "a lease in memory" }
