// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// An operator with Config.Selector works for the MCPServers that have certain labels, and others work for the rest. It watches all
// MCPServers, since an object whose MCPServer is another operator's is no leftover, and keeps of those only their identity and
// their references.
//
// When the labels of an MCPServer change, it moves. Both operators see that in watches of their own, and at different times. The one
// that it leaves may see the children that the other one has written before it sees why, and would answer them. So it asks the API
// server before the first request of a pass that changes a child. It decides on what it had read before it asked. If another client has
// written the child since, the precondition of the request fails. So the first operator writes no child after the second one has
// written it.

// selecting returns a function that reports whether an operator works for an MCPServer; a nil selector selects all.
func selecting(selector labels.Selector) func(server *v1beta1.MCPServer) bool {
	return func(server *v1beta1.MCPServer) bool {
		return selector == nil || selector.Matches(labels.Set(server.Labels))
	}
}

// slimServers is a cache.TransformFunc for MCPServers.
func slimServers(texts *texts, selects func(server *v1beta1.MCPServer) bool) cache.TransformFunc {
	return func(obj any) (any, error) {
		if server, ok := obj.(*v1beta1.MCPServer); ok && !selects(server) {
			return outlineOf(server), nil
		}
		return texts.slimServer(obj)
	}
}

// outlineOf returns what is kept of an MCPServer that another operator works for.
func outlineOf(server *v1beta1.MCPServer) *v1beta1.MCPServer {
	meta := identity(server)
	meta.Labels = server.Labels
	return &v1beta1.MCPServer{ObjectMeta: meta, Spec: configs.References(&server.Spec)}
}

// isSelected reports whether an event is about an MCPServer that the operator works for.
func (c *caches) isSelected(obj any) bool {
	server, ok := lastKnown(obj).(*v1beta1.MCPServer)
	return ok && c.selects(server)
}

// errMovedAway keeps a request from being sent.
var errMovedAway = fmt.Errorf("the labels of the MCPServer have changed, and this operator does not select it: %w", apply.ErrNotOurs)

// shardCheck makes sure that an MCPServer is still this operator's when a pass begins to write. The zero value always does,
// without a check.
type shardCheck struct {
	// ask returns an error unless it is; nil where there is nothing to ask.
	ask func(ctx context.Context) error
	// sure reports that the answer was yes, and that the pass has read nothing since.
	sure bool
	// lost is the last answer, if it was no.
	lost error
}

// newShardCheck returns that of an MCPServer, which asks the API server; with a nil selector there is nothing to ask.
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

// isLost reports whether the MCPServer is another operator's, which reports on it.
func (m *shardCheck) isLost() bool { return errors.Is(m.lost, errMovedAway) }

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
