// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhiveclient "github.com/freehold-dev/freehold/generated/clientset/versioned/typed/toolhive/v1beta1"
)

// issuer is the name of the MCPOIDCConfig that all MCPServers come to refer to.
const issuer = "issuer"

// configPatience is how long an operator may take until it reports on a new MCPOIDCConfig. Freehold leaves one alone for a minute, in
// case ToolHive's operator runs.
const configPatience = 5 * time.Minute

// editConfig lets all MCPServers refer to one MCPOIDCConfig, and waits until the operator has reported on that: from then on it writes the
// status of the MCPOIDCConfig as well, however few MCPServers there are. Then it edits the MCPOIDCConfig once, and observes the operator
// until every proxy is replaced and the operator is at rest.
func (o *subject) editConfig(ctx context.Context, n int) (stage, error) {
	configs := o.site.servers.ToolhiveV1beta1().MCPOIDCConfigs(measured)
	_, err := configs.Create(ctx, &v1beta1.MCPOIDCConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: measured, Name: issuer},
		Spec: v1beta1.MCPOIDCConfigSpec{
			Type:   v1beta1.MCPOIDCConfigTypeInline,
			Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: "https://first.example.com"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return stage{}, err
	}
	_, err = o.rollOut(ctx, n, func(ctx context.Context) error {
		if err := o.site.referAll(ctx); err != nil {
			return err
		}
		return awaitObserved(ctx, configs, issuer)
	})
	if err != nil {
		return stage{}, fmt.Errorf("when all come to refer to an MCPOIDCConfig: %w", err)
	}
	return o.rollOut(ctx, n, func(ctx context.Context) error {
		patch := []byte(`{"spec":{"inline":{"issuer":"https://second.example.com"}}}`)
		_, err := configs.Patch(ctx, issuer, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: hand})
		return err
	})
}

// awaitObserved waits until the status of an MCPOIDCConfig is about its present generation.
func awaitObserved(ctx context.Context, configs toolhiveclient.MCPOIDCConfigInterface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 10*pollInterval, configPatience, true, func(ctx context.Context) (bool, error) {
		config, err := configs.Get(ctx, name, metav1.GetOptions{})
		return err == nil && config.Status.ObservedGeneration == config.Generation, err
	})
	if err != nil {
		return fmt.Errorf("the operator does not report on MCPOIDCConfig %s: %w", name, err)
	}
	return nil
}

// referAll lets all MCPServers refer to the MCPOIDCConfig.
func (s *site) referAll(ctx context.Context) error {
	servers := s.servers.ToolhiveV1beta1().MCPServers(measured)
	list, err := servers.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"oidcConfigRef":{"name":%q,"audience":"mcp"}}}`, issuer)
	return each(ctx, len(list.Items), func(ctx context.Context, i int) error {
		_, err := servers.Patch(ctx, list.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: hand})
		return err
	})
}

// rollOut does something that makes the operator replace all proxies. It takes until the last Deployment has a new template and the
// new pod is available; CPU time and writes are counted until the operator is quiet.
func (o *subject) rollOut(ctx context.Context, n int, act func(ctx context.Context) error) (stage, error) {
	var done stage
	observed, err := o.observe(ctx, func(ctx context.Context) error {
		rolled, end, err := o.site.watchRollOut(ctx, n)
		if err != nil {
			return err
		}
		defer end()
		began := time.Now()
		if err := act(ctx); err != nil {
			return err
		}
		at, err := rolled.wait(ctx)
		if err != nil {
			return fmt.Errorf("new proxies: %w", err)
		}
		done.Took = at.Sub(began)
		_, err = o.quiet(ctx)
		return err
	})
	observed.Took = done.Took
	return observed, err
}

// watchRollOut returns a goal that is reached when every Deployment has another template than now and a pod of it is available.
func (s *site) watchRollOut(ctx context.Context, n int) (_ *goal, end func(), err error) {
	list, err := s.core.AppsV1().Deployments(measured).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	if len(list.Items) != n {
		return nil, nil, fmt.Errorf("there are %d Deployments, want %d", len(list.Items), n)
	}
	before := map[string]int64{}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
		before[list.Items[i].Name] = list.Items[i].Generation
	}
	rolled := newGoal(names)
	ctx, cancel := context.WithCancel(ctx)
	core := informers.NewSharedInformerFactoryWithOptions(s.core, 0, informers.WithNamespace(measured))
	end = func() {
		cancel()
		core.Shutdown()
	}
	handle, err := core.Apps().V1().Deployments().Informer().AddEventHandler(onSight(func(obj any) {
		if d, ok := obj.(*appsv1.Deployment); ok && d.Generation > before[d.Name] && isRolledOut(d) {
			rolled.met(d.Name)
		}
	}))
	if err != nil {
		end()
		return nil, nil, err
	}
	core.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		end()
		return nil, nil, fmt.Errorf("the watch of Deployments did not start: %w", context.Cause(ctx))
	}
	return rolled, end, nil
}

// isRolledOut reports whether all pods of a Deployment have its template and are available.
func isRolledOut(d *appsv1.Deployment) bool {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want
}
