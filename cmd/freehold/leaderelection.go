// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errLeaseLost ends the process: another replica works now, and this one starts afresh.
var errLeaseLost = errors.New("lost the lease; another replica may be working")

// lead does the work while this process holds the lease. When the context ends, the work ends first and the lease
// is released after it, so that no other replica starts meanwhile. The fence holds back writes after the lease has run
// out; a write that is late all the same is harmless because of its precondition.
func lead(
	ctx context.Context, o *options, core kubernetes.Interface,
	health *leaderelection.HealthzAdaptor, writes *fence, work func(context.Context) error,
) error {
	hostname, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("no identity for leader election: %w", err)
	}
	electing, stopElecting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElecting()
	ended := make(chan error, 1)
	lock := &datedLock{Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.leaseNamespace, Name: o.leaseName},
		Client:     core.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: hostname + "_" + string(uuid.NewUUID())},
	}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:            o.leaseName,
		Lock:            lock,
		LeaseDuration:   o.leaseDuration,
		RenewDeadline:   o.renewDeadline,
		RetryPeriod:     o.retryPeriod,
		ReleaseOnCancel: true,
		WatchDog:        health,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer stopElecting()
				working, stopWorking := context.WithCancel(leading)
				defer stopWorking()
				defer context.AfterFunc(ctx, stopWorking)()
				ended <- work(working)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	health.SetLeaderElection(elector)
	writes.lock, writes.lasts = lock, o.leaseDuration
	writes.elector.Store(elector) // From here on, writes without its lease are held back.
	defer context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			stopElecting()
		}
	})()

	elector.Run(electing)
	if ctx.Err() != nil {
		return nil
	}
	select {
	case err := <-ended:
		if err != nil {
			return err
		}
	default:
	}
	return errLeaseLost
}
