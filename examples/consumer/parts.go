// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	toolhivev1beta1 "github.com/freehold-dev/freehold/generated/clientset/versioned/typed/toolhive/v1beta1"
)

// The field managers of this program. Two parts that must be able to come and go without each other need two names: an
// apply removes what its manager has applied before and does not apply any more.
const (
	author   = "consumer-author"
	policy   = "consumer-policy"
	attester = "consumer-attester"
)

// attested is the type of this program's condition, with a domain of its own so that no other program has it.
const attested = "consumer.example.com/Attested"

// parts are the three parts that the program plays.
type parts struct {
	servers         toolhivev1beta1.MCPServerInterface
	namespace, name string
}

// create applies what the author wants. What is not named here gets its default and no owner, or is for others.
func (p *parts) create(ctx context.Context) (*v1beta1.MCPServer, error) {
	config := toolhivev1beta1ac.MCPServer(p.name, p.namespace).
		WithLabels(map[string]string{"app.kubernetes.io/created-by": author}).
		WithSpec(toolhivev1beta1ac.MCPServerSpec().
			WithImage("example.com/mcp:1").
			WithTransport(v1beta1.TransportStreamableHTTP).
			WithMCPPort(9000))
	return p.servers.Apply(ctx, config, metav1.ApplyOptions{FieldManager: author})
}

// config returns a configuration for the very object that was created: with its UID, an apply cannot create another one
// in its place if it was deleted in the meantime.
func (p *parts) config(uid types.UID) *toolhivev1beta1ac.MCPServerApplyConfiguration {
	return toolhivev1beta1ac.MCPServer(p.name, p.namespace).WithUID(uid)
}

// govern owns spec.authzConfig and nothing else.
func (p *parts) govern(ctx context.Context, uid types.UID) (*v1beta1.MCPServer, error) {
	config := p.config(uid).WithSpec(toolhivev1beta1ac.MCPServerSpec().
		WithAuthzConfig(toolhivev1beta1ac.AuthzConfigRef().
			WithType(v1beta1.AuthzConfigTypeInline).
			WithInline(toolhivev1beta1ac.InlineAuthzConfig().
				WithPolicies(`permit(principal, action == Action::"call_tool", resource == Tool::"weather");`))))
	return p.servers.Apply(ctx, config, metav1.ApplyOptions{FieldManager: policy})
}

// attest owns one condition. The conditions of others are not in the list and stay as they are.
func (p *parts) attest(ctx context.Context, uid types.UID, reason, message string) error {
	config := p.config(uid).WithStatus(toolhivev1beta1ac.MCPServerStatus().WithConditions(metav1ac.Condition().
		WithType(attested).WithStatus(metav1.ConditionTrue).WithReason(reason).WithMessage(message).
		WithLastTransitionTime(metav1.Now())))
	_, err := p.servers.ApplyStatus(ctx, config, metav1.ApplyOptions{FieldManager: attester})
	return err
}

// release gives back the policy and the condition: a manager that applies nothing owns nothing, and a field that has no
// owner left is removed. An object that is not there any more has nothing to give back.
func (p *parts) release(ctx context.Context, uid types.UID) error {
	if current, err := p.servers.Get(ctx, p.name, metav1.GetOptions{}); apierrors.IsNotFound(err) || err == nil && current.UID != uid {
		return nil
	}
	_, policyErr := p.servers.Apply(ctx, p.config(uid), metav1.ApplyOptions{FieldManager: policy})
	_, statusErr := p.servers.ApplyStatus(ctx, p.config(uid), metav1.ApplyOptions{FieldManager: attester})
	return errors.Join(policyErr, statusErr)
}
