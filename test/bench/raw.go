// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// rawApplier sends what the operator sends for an MCPServer that becomes Ready, and does nothing else: no caches, no
// comparison, no waiting for a backend. It is the least that the same writes can cost.
type rawApplier struct {
	core    kubernetes.Interface
	servers versioned.Interface
	options render.Options
	workers int
}

// newRawApplier returns an applier whose clients are set up as the operator's are. It works on that many MCPServers at a time.
func newRawApplier(config *rest.Config, options render.Options, workers int) (*rawApplier, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	builtin := rest.CopyConfig(config)
	builtin.ContentType = runtime.ContentTypeProtobuf
	builtin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	a := &rawApplier{options: options, workers: workers}
	if a.core, err = kubernetes.NewForConfigAndClient(builtin, client); err != nil {
		return nil, err
	}
	a.servers, err = versioned.NewForConfigAndClient(config, client)
	return a, err
}

// converge makes MCPServers, works for them, and waits until their proxies are ready.
func (a *rawApplier) converge(ctx context.Context, s *site, p places) (times arrival, err error) {
	group, ctx := errgroup.WithContext(ctx)
	queue := make(chan *v1beta1.MCPServer, p.servers)
	for range a.workers {
		group.Go(func() error {
			for server := range queue {
				if err := a.apply(ctx, server); err != nil {
					return fmt.Errorf("MCPServer %s: %w", server.Name, err)
				}
			}
			return nil
		})
	}
	group.Go(func() (err error) {
		defer close(queue)
		l := load{places: p, handOn: func(made *v1beta1.MCPServer) { queue <- made }}
		times, err = s.converge(ctx, l, childrenExist, proxiesReady)
		return err
	})
	err = group.Wait()
	return times, err
}

// apply sends everything that is applied for one MCPServer, in the operator's order.
func (a *rawApplier) apply(ctx context.Context, server *v1beta1.MCPServer) error {
	finalizer := toolhivev1beta1ac.MCPServer(server.Name, server.Namespace).WithFinalizers(v1beta1.Finalizer)
	server, err := a.applyServer(ctx, server, finalizer)
	if err != nil {
		return err
	}
	result, err := render.Render(render.Input{Server: server}, a.options)
	if err != nil {
		return err
	}
	source := map[string]string{
		v1beta1.AnnotationSource: apply.Source{UID: server.UID, Generation: server.Generation}.String(),
	}
	configs := map[string]types.UID{}
	for _, intent := range result.Intents {
		render.PinConfigs(intent, func(configMap string) types.UID { return configs[configMap] })
		uid, err := a.applyChild(ctx, server.Namespace, intent, source)
		if err != nil {
			return fmt.Errorf("%s %s: %w", intent.Kind.Kind, intent.Name, err)
		}
		if uid != "" {
			configs[intent.Name] = uid
		}
	}
	done := rollout.State{Phase: rollout.Complete, Ready: true}
	for _, observed := range []status.Observation{
		{StatefulSet: &workload.StatefulSet{}},
		{
			StatefulSet: &workload.StatefulSet{}, Backend: done, Proxy: done, Images: []string{server.Spec.Image},
			ProxyPods: []*workload.Pod{{Phase: corev1.PodRunning, Statuses: []workload.ContainerStatus{{Ready: true}}}},
		},
	} {
		observed.Server, observed.URL = server, render.URL(server)
		next := status.Compute(observed, time.Now())
		if server, err = a.applyStatus(ctx, server, next); err != nil {
			return fmt.Errorf("status: %w", err)
		}
	}
	return nil
}

func (a *rawApplier) applyServer(
	ctx context.Context, server *v1beta1.MCPServer, config *toolhivev1beta1ac.MCPServerApplyConfiguration,
) (*v1beta1.MCPServer, error) {
	config.WithUID(server.UID).WithResourceVersion(server.ResourceVersion)
	return a.servers.ToolhiveV1beta1().MCPServers(server.Namespace).Apply(ctx, config,
		metav1.ApplyOptions{FieldManager: managers.Finalizer})
}

func (a *rawApplier) applyStatus(
	ctx context.Context, server *v1beta1.MCPServer, next v1beta1.MCPServerStatus,
) (*v1beta1.MCPServer, error) {
	config := status.Intent(server, next)
	config.WithUID(server.UID).WithResourceVersion(server.ResourceVersion)
	return a.servers.ToolhiveV1beta1().MCPServers(server.Namespace).ApplyStatus(ctx, config,
		metav1.ApplyOptions{FieldManager: managers.Status})
}

// applyChild creates one object. It returns the UID of a ConfigMap, and none of another kind.
func (a *rawApplier) applyChild(
	ctx context.Context, namespace string, intent render.Intent, source map[string]string,
) (_ types.UID, err error) {
	const createOnly = "1"
	options := metav1.ApplyOptions{FieldManager: intent.Writer}
	switch config := intent.Config.(type) {
	case *appsv1ac.DeploymentApplyConfiguration:
		_, err = a.core.AppsV1().Deployments(namespace).Apply(ctx,
			config.WithResourceVersion(createOnly).WithAnnotations(source), options)
	case *appsv1ac.StatefulSetApplyConfiguration:
		_, err = a.core.AppsV1().StatefulSets(namespace).Apply(ctx,
			config.WithResourceVersion(createOnly).WithAnnotations(source), options)
	case *corev1ac.ServiceApplyConfiguration:
		_, err = a.core.CoreV1().Services(namespace).Apply(ctx,
			config.WithResourceVersion(createOnly).WithAnnotations(source), options)
	case *corev1ac.ConfigMapApplyConfiguration:
		made, err := a.core.CoreV1().ConfigMaps(namespace).Apply(ctx,
			config.WithResourceVersion(createOnly).WithAnnotations(source), options)
		if err != nil {
			return "", err
		}
		return made.UID, nil
	case *corev1ac.ServiceAccountApplyConfiguration:
		_, err = a.core.CoreV1().ServiceAccounts(namespace).Apply(ctx,
			config.WithResourceVersion(createOnly).WithAnnotations(source), options)
	case *rbacv1ac.RoleApplyConfiguration:
		_, err = a.core.RbacV1().Roles(namespace).Apply(ctx,
			config.WithResourceVersion(createOnly).WithAnnotations(source), options)
	case *rbacv1ac.RoleBindingApplyConfiguration:
		_, err = a.core.RbacV1().RoleBindings(namespace).Apply(ctx,
			config.WithResourceVersion(createOnly).WithAnnotations(source), options)
	default:
		err = fmt.Errorf("the raw applier does not know a %T", config)
	}
	return "", err
}

// letGo releases all MCPServers of a namespace that are being deleted.
func (a *rawApplier) letGo(ctx context.Context, namespace string) error {
	list, err := a.servers.ToolhiveV1beta1().MCPServers(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		server := &list.Items[i]
		if _, err := a.applyServer(ctx, server, toolhivev1beta1ac.MCPServer(server.Name, namespace)); err != nil {
			return fmt.Errorf("MCPServer %s: %w", server.Name, err)
		}
	}
	return nil
}
