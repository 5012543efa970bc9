// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/webhook"
)

const (
	// slowly is a namespace whose webhook takes slowAnswer for each write of an operator. There are slowServers new MCPServers in it: more
	// than an operator has workers.
	slowly      = "slow"
	slowServers = 24
	slowAnswer  = 8 * time.Second
	// specEdits is how many MCPServers have their spec edited, one after the other, or all if there are fewer.
	specEdits = 200
	// specPatience is how long an operator may take for one such edit, and the API server until it asks the webhook.
	specPatience = 5 * time.Minute
)

// latencies are the times from edits of specs until the operator writes the backends, sorted: in calm, and while another namespace has a
// slow webhook.
type latencies struct {
	Calm, Slow []time.Duration
}

// besideSlow edits MCPServers in calm, and then while another namespace has a slow webhook.
func (o *freehold) besideSlow(ctx context.Context, p places) (done latencies, err error) {
	if done.Calm, err = o.editSpecs(ctx, p, "calm"); err != nil {
		return done, err
	}
	if err := o.site.makeNamespace(ctx, slowly); err != nil {
		return done, err
	}
	patient, cancel := context.WithTimeout(ctx, specPatience)
	defer cancel()
	remove, err := webhook.Delay(patient, o.site.core, slowly, slowAnswer)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx))) }()
	servers, err := newServers(places{name: slowly, servers: slowServers}, v1beta1.TransportStreamableHTTP)
	if err != nil {
		return done, err
	}
	err = each(ctx, len(servers), func(ctx context.Context, i int) error {
		_, err := o.site.servers.ToolhiveV1beta1().MCPServers(slowly).Create(ctx, servers[i], metav1.CreateOptions{FieldManager: hand})
		return err
	})
	if err != nil {
		return done, fmt.Errorf("cannot make MCPServers: %w", err)
	}
	if done.Slow, err = o.editSpecs(ctx, p, "slow"); err != nil {
		return done, err
	}
	return done, o.site.servers.ToolhiveV1beta1().MCPServers(slowly).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// editSpecs gives MCPServers an image of a tag, one after the other, and returns how long each of their backends took to be written.
func (o *freehold) editSpecs(ctx context.Context, p places, tag string) (times []time.Duration, err error) {
	patch := fmt.Appendf(nil, `{"spec":{"image":"example.com/mcp:%s"}}`, tag)
	for i := range min(p.servers, specEdits) {
		took, err := o.editSpec(ctx, p.namespaceOf(i), serverName(i), patch)
		if err != nil {
			return nil, fmt.Errorf("an edit of MCPServer %s: %w", serverName(i), err)
		}
		times = append(times, took)
	}
	slices.Sort(times)
	return times, nil
}

func (o *freehold) editSpec(ctx context.Context, namespace, name string, patch []byte) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, specPatience)
	defer cancel()
	mark, err := o.site.cluster.AuditMark(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	servers := o.site.servers.ToolhiveV1beta1().MCPServers(namespace)
	_, err = servers.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: hand})
	if err != nil {
		return 0, err
	}
	written, _, err := o.site.audit.WaitFor(ctx, mark, func(events []*audit.Event) bool { return len(events) > 0 },
		o.account, audit.Writes(), audit.Succeeded(), audit.Namespace(namespace), audit.Resource("apps", "statefulsets"),
		func(e *audit.Event) bool { return e.Name == name && e.Subresource == "" })
	if err != nil {
		return 0, fmt.Errorf("the backend is not written: %w", err)
	}
	return written[0].Received.Sub(began), nil
}
