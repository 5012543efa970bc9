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

// issuer is the name of the MCPOIDCConfig that all MCPServers of a namespace come to refer to.
const issuer = "issuer"

// configPatience is how long an operator may take until it reports on a new MCPOIDCConfig. Freehold leaves one alone for a minute, in
// case ToolHive's operator runs.
const configPatience = 5 * time.Minute

// editConfig lets all MCPServers refer to the MCPOIDCConfig of their namespace, and waits until the operator has reported on each of those:
// from then on it writes the status of an MCPOIDCConfig as well, however few MCPServers there are. Then it edits each MCPOIDCConfig once,
// and observes the operator until every proxy is replaced and the operator is at rest.
func (o *subject) editConfig(ctx context.Context, p places) (stage, error) {
	namespaces := p.namespaces()
	configs := o.site.servers.ToolhiveV1beta1().MCPOIDCConfigs
	err := each(ctx, len(namespaces), func(ctx context.Context, i int) error {
		_, err := configs(namespaces[i]).Create(ctx, &v1beta1.MCPOIDCConfig{
			ObjectMeta: metav1.ObjectMeta{Name: issuer},
			Spec: v1beta1.MCPOIDCConfigSpec{
				Type:   v1beta1.MCPOIDCConfigTypeInline,
				Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: "https://first.example.com"},
			},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return stage{}, err
	}
	_, err = o.rollOut(ctx, p, func(ctx context.Context) error {
		if err := o.site.referAll(ctx, p); err != nil {
			return err
		}
		return each(ctx, len(namespaces), func(ctx context.Context, i int) error {
			return awaitObserved(ctx, configs(namespaces[i]), issuer)
		})
	})
	if err != nil {
		return stage{}, fmt.Errorf("when all come to refer to an MCPOIDCConfig: %w", err)
	}
	return o.rollOut(ctx, p, func(ctx context.Context) error {
		patch := []byte(`{"spec":{"inline":{"issuer":"https://second.example.com"}}}`)
		return each(ctx, len(namespaces), func(ctx context.Context, i int) error {
			_, err := configs(namespaces[i]).Patch(ctx, issuer, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: hand})
			return err
		})
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

// referAll lets all MCPServers refer to the MCPOIDCConfig of their namespace.
func (s *site) referAll(ctx context.Context, p places) error {
	patch := fmt.Appendf(nil, `{"spec":{"oidcConfigRef":{"name":%q,"audience":"mcp"}}}`, issuer)
	return each(ctx, p.servers, func(ctx context.Context, i int) error {
		servers := s.servers.ToolhiveV1beta1().MCPServers(p.namespaceOf(i))
		_, err := servers.Patch(ctx, serverName(i), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: hand})
		return err
	})
}

// rollOut does something that makes the operator replace all proxies. It takes until the last Deployment has a new template and the
// new pod is available; CPU time and writes are counted until the operator is quiet.
func (o *subject) rollOut(ctx context.Context, p places, act func(ctx context.Context) error) (stage, error) {
	var done stage
	observed, err := o.observe(ctx, func(ctx context.Context) error {
		rolled, end, err := o.site.watchRollOut(ctx, p)
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
func (s *site) watchRollOut(ctx context.Context, p places) (_ *goal, end func(), err error) {
	list, err := s.core.AppsV1().Deployments(p.watched()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	before := map[string]int64{}
	var names []string
	for i := range list.Items {
		if d := &list.Items[i]; p.holds(d) {
			names = append(names, d.Name)
			before[d.Name] = d.Generation
		}
	}
	if len(names) != p.servers {
		return nil, nil, fmt.Errorf("there are %d Deployments, want %d", len(names), p.servers)
	}
	rolled := newGoal(names)
	ctx, cancel := context.WithCancel(ctx)
	core := informers.NewSharedInformerFactoryWithOptions(s.core, 0, informers.WithNamespace(p.watched()))
	end = func() {
		cancel()
		core.Shutdown()
	}
	handle, err := core.Apps().V1().Deployments().Informer().AddEventHandler(p.handler(onSight(func(obj any) {
		if d, ok := obj.(*appsv1.Deployment); ok && d.Generation > before[d.Name] && isRolledOut(d) {
			rolled.met(d.Name)
		}
	})))
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
