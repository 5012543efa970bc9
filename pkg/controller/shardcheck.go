// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// errMovedAway keeps a request from being sent.
var errMovedAway = fmt.Errorf("the labels of the MCPServer have changed, and this operator does not select it: %w", apply.ErrNotOurs)

// shardCheck makes sure that an MCPServer is still this operator's when a pass begins to write. The zero value asks nothing.
type shardCheck struct {
	// ask returns an error unless the MCPServer is this operator's; nil where there is nothing to ask.
	ask func(ctx context.Context) error
	// sure reports that the answer was yes, and that the pass has read nothing since.
	sure bool
	// lost is the last answer, if it was no.
	lost error
}

// newShardCheck returns the check of an MCPServer, which asks the API server; with a nil selector there is nothing to ask.
func newShardCheck(selector labels.Selector, client versioned.Interface, server *v1beta1.MCPServer) *shardCheck {
	if selector == nil {
		return &shardCheck{}
	}
	return &shardCheck{ask: func(ctx context.Context) error {
		// The operator has the right to list MCPServers, for its informers, and needs none to get one.
		byName := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", server.Name).String()}
		live, err := client.ToolhiveV1beta1().MCPServers(server.Namespace).List(ctx, byName) //nolint:forbidigo // A lister may be behind.
		if err != nil {
			return fmt.Errorf("cannot make sure that the MCPServer is still selected: %w", err)
		}
		for i := range live.Items {
			if found := &live.Items[i]; found.UID == server.UID && selector.Matches(labels.Set(found.Labels)) {
				return nil
			}
		}
		return errMovedAway
	}}
}

// check returns an error unless the MCPServer is still this operator's.
func (m *shardCheck) check(ctx context.Context) error {
	if m.ask == nil || m.sure || m.lost != nil {
		return m.lost
	}
	m.lost = m.ask(ctx)
	m.sure = m.lost == nil
	return m.lost
}

// complete has a write checked. One to the MCPServer itself needs no check: its precondition is the version that was seen.
func (m *shardCheck) complete(req *apply.Request) {
	if m.ask == nil || req.Object.Kind == managers.MCPServer {
		return
	}
	req.Before = m.check
	if load := req.Load; load != nil {
		req.Load = func(ctx context.Context) (metav1.Object, error) {
			m.sure = false // The answer has to be later than what is read.
			return load(ctx)
		}
	}
}

// guard returns a client that checks before it sends a deletion, whatever its options.
func guard[O any](m *shardCheck, send func(ctx context.Context, name string, options O) error) func(ctx context.Context, name string, options O) error {
	return func(ctx context.Context, name string, options O) error {
		if err := m.check(ctx); err != nil {
			return err
		}
		return send(ctx, name, options)
	}
}
