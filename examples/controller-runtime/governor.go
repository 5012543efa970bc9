// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
)

// The field managers of this program. The policy and the condition have one each: an apply removes what its manager has
// applied before and does not apply any more.
const (
	author   = client.FieldOwner("runtime-author")
	policy   = client.FieldOwner("runtime-policy")
	attester = client.FieldOwner("runtime-attester")
)

// attested is the type of this program's condition, with a domain of its own so that no other program has it.
const attested = "runtime.example.com/Attested"

// create creates the MCPServer that is watched.
func create(ctx context.Context, c client.Client, namespace, name string) error {
	server := &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.MCPServerSpec{
			Image: "example.com/mcp:1", Transport: v1beta1.TransportStreamableHTTP, ProxyPort: 8080, MCPPort: 9000,
		},
	}
	if err := c.Create(ctx, server, author); err != nil {
		return err
	}
	fmt.Println("created", server.Name)
	return nil
}

// governor reconciles MCPServers.
type governor struct {
	client client.Client
	// said is the last line about each MCPServer. Reconcile runs in one goroutine.
	said map[client.ObjectKey]string
}

// Reconcile applies the policy and the condition where they are not what they should be.
func (g *governor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	server := &v1beta1.MCPServer{}
	if err := g.client.Get(ctx, request.NamespacedName, server); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if server.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if sent, err := g.govern(ctx, server); sent || err != nil {
		return ctrl.Result{}, err // The event of this write comes back here.
	}
	if err := g.attest(ctx, server); err != nil {
		return ctrl.Result{}, err
	}
	g.tell(request.NamespacedName, server)
	return ctrl.Result{}, nil
}

// config returns a configuration for the very object: with its UID, an apply cannot create another one in its place if
// it was deleted in the meantime.
func config(server *v1beta1.MCPServer) *toolhivev1beta1ac.MCPServerApplyConfiguration {
	return toolhivev1beta1ac.MCPServer(server.Name, server.Namespace).WithUID(server.UID)
}

// seen returns a configuration for the object as the cache shows it. A cache that lags behind shows an object without
// what was just written to it; the API server then refuses to write that again, and the controller tries again later.
func seen(server *v1beta1.MCPServer) *toolhivev1beta1ac.MCPServerApplyConfiguration {
	return config(server).WithResourceVersion(server.ResourceVersion)
}

// govern owns spec.authzConfig. What it owns already is asked of managedFields, so that nothing is sent in vain.
func (g *governor) govern(ctx context.Context, server *v1beta1.MCPServer) (sent bool, err error) {
	want := toolhivev1beta1ac.MCPServerSpec().WithAuthzConfig(toolhivev1beta1ac.AuthzConfigRef().
		WithType(v1beta1.AuthzConfigTypeInline).
		WithInline(toolhivev1beta1ac.InlineAuthzConfig().
			WithPolicies(`permit(principal, action == Action::"call_tool", resource == Tool::"weather");`)))
	owned, err := toolhivev1beta1ac.ExtractMCPServer(server, string(policy))
	if err != nil || equality.Semantic.DeepEqual(owned.Spec, want) {
		return false, err
	}
	return true, g.client.Apply(ctx, seen(server).WithSpec(want), policy)
}

// attest owns one condition. The conditions of others are not in the list and stay as they are.
func (g *governor) attest(ctx context.Context, server *v1beta1.MCPServer) error {
	if meta.IsStatusConditionTrue(server.Status.Conditions, attested) {
		return nil
	}
	want := seen(server).WithStatus(toolhivev1beta1ac.MCPServerStatus().WithConditions(metav1ac.Condition().
		WithType(attested).WithStatus(metav1.ConditionTrue).WithReason("Attested").WithMessage("the policy was applied").
		WithLastTransitionTime(metav1.Now())))
	if err := g.client.Status().Apply(ctx, want, attester); err != nil {
		return err
	}
	fmt.Println("attested", server.Name)
	return nil
}

// tell logs a line when an MCPServer becomes Ready at another generation.
func (g *governor) tell(key client.ObjectKey, server *v1beta1.MCPServer) {
	if server.Status.ObservedGeneration != server.Generation || !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
		return
	}
	if state := fmt.Sprintf("ready at generation %d: %s", server.Generation, server.Status.URL); state != g.said[key] {
		fmt.Println(state)
		g.said[key] = state
	}
}

// releaseAll gives back the policy and the condition of every MCPServer: a manager that applies nothing owns nothing, and
// a field that has no owner left is removed.
func releaseAll(ctx context.Context, c client.Client, namespace string) error {
	var servers v1beta1.MCPServerList
	if err := c.List(ctx, &servers, client.InNamespace(namespace)); err != nil {
		return err
	}
	var failed []error
	for i := range servers.Items {
		server := &servers.Items[i]
		err := errors.Join(c.Apply(ctx, config(server), policy), c.Status().Apply(ctx, config(server), attester))
		if client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("giving back MCPServer %s: %w", server.Name, err))
			continue
		}
		fmt.Println("released", server.Name)
	}
	return errors.Join(failed...)
}
