// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
)

const (
	// podsPerNode is how many pods a fake node takes, and podsPerServer how many an MCPServer has.
	podsPerNode   = 10000
	podsPerServer = 2
	// warmUps is how many MCPServers come and go before anything is measured: the first requests of each kind cost
	// a new API server several times what later ones do.
	warmUps = 20
)

// measured is the namespace of the MCPServers that are measured, or what the names of several begin with.
const measured = "measured"

// site is a control plane with Freehold installed, and without an operator.
type site struct {
	cluster *cluster.Cluster
	// core, servers and metadata have all rights, and no limits.
	core     kubernetes.Interface
	servers  versioned.Interface
	metadata metadata.Interface
	audit    *audit.Reader
	// operator are the credentials of the operator's ServiceAccount, kubeconfig is the path of the same.
	operator   *rest.Config
	kubeconfig string
}

// openSite starts a control plane that has been used a little. The caller closes what is returned without an error.
func (b *bench) openSite(ctx context.Context) (_ *site, err error) {
	nodes := (b.settings.servers+warmUps)*podsPerServer/podsPerNode + 1
	s, err := newSite(ctx, cluster.Options{FakeNodes: nodes, Progress: b.progress})
	if err != nil {
		return nil, err
	}
	if err := s.warmUp(ctx, b); err != nil {
		return nil, errors.Join(fmt.Errorf("warm-up: %w", err), s.close())
	}
	return s, nil
}

// newSite starts a control plane. The caller closes what is returned without an error.
func newSite(ctx context.Context, options cluster.Options) (_ *site, err error) {
	s := &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.cluster, err = cluster.Start(ctx, options); err != nil {
		return nil, fmt.Errorf("no cluster: %w", err)
	}
	admin := s.cluster.RESTConfig()
	if s.core, err = kubernetes.NewForConfig(admin); err != nil {
		return nil, err
	}
	if s.servers, err = versioned.NewForConfig(admin); err != nil {
		return nil, err
	}
	if s.metadata, err = metadata.NewForConfig(admin); err != nil {
		return nil, err
	}
	s.audit = audit.NewReader(s.cluster.AuditLog())
	if err := operator.Install(ctx, admin, os.Stderr); err != nil {
		return nil, fmt.Errorf("cannot install Freehold: %w", err)
	}
	if s.operator, err = s.cluster.ServiceAccountConfig(ctx, operator.Namespace, operator.ServiceAccount); err != nil {
		return nil, err
	}
	s.kubeconfig, err = s.cluster.ServiceAccountKubeconfig(ctx, operator.Namespace, operator.ServiceAccount)
	return s, err
}

func (s *site) close() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}

// plane begins to measure the CPU time of the control plane's processes. What it returns ends that.
func (s *site) plane() (func() (map[cluster.Component]time.Duration, error), error) {
	pids := s.cluster.PIDs()
	before, err := cpuTimes(pids)
	return func() (map[cluster.Component]time.Duration, error) {
		used, err := cpuTimes(pids)
		for component := range used {
			used[component] -= before[component]
		}
		return used, err
	}, err
}

// warmUp lets MCPServers come, by the raw applier, and go without a trace.
func (s *site) warmUp(ctx context.Context, b *bench) error {
	const namespace = "warm-up"
	p := places{name: namespace, servers: warmUps}
	raw, err := newRawApplier(s.operator, b.deployed.rendering, p.workers(b.settings.workers))
	if err != nil {
		return err
	}
	if _, err := raw.converge(ctx, s, p); err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = s.servers.ToolhiveV1beta1().MCPServers(namespace).DeleteCollection(ctx,
		metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot delete the MCPServers: %w", err)
	}
	if err := raw.letGo(ctx, namespace); err != nil {
		return fmt.Errorf("cannot release the MCPServers: %w", err)
	}
	if err := s.core.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := s.core.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

func (s *site) makeNamespace(ctx context.Context, name string) error {
	_, err := s.core.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}
