// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/toolhive"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// startUpstream starts ToolHive's own operator, with the rights and the environment of its chart but for the chart's
// limits on memory: with GOMEMLIMIT it would spend its CPU time on collecting garbage long before 1,000 MCPServers,
// and a comparison of CPU time would flatter Freehold. The caller closes it.
func (b *bench) startUpstream(ctx context.Context, s *site) (*subject, error) {
	o := &subject{
		name: "ToolHive's operator", site: s, out: b.progress,
		account: audit.ServiceAccount(toolhive.Namespace, toolhive.ServiceAccount),
	}
	o.start = func(ctx context.Context) (process, error) {
		p, err := toolhive.Start(ctx, s.cluster, toolhive.Options{Dir: b.dir})
		if err != nil {
			return nil, err
		}
		o.log = p.Log()
		return p, nil
	}
	o.settled = func(ctx context.Context, _ int, act func(ctx context.Context) error) error {
		if err := act(ctx); err != nil {
			return err
		}
		// Nothing reports what it has looked at.
		_, err := o.quiet(ctx)
		return err
	}
	var err error
	if o.process, err = o.start(ctx); err != nil {
		return nil, errors.Join(err, o.close(true))
	}
	if _, err := o.quiet(ctx); err != nil {
		return nil, errors.Join(err, o.close(true))
	}
	return o, nil
}

// upstreamChildren are what ToolHive's operator makes for an MCPServer. The StatefulSet and the Services of the backend
// are not among them: in ToolHive every proxyrunner makes those itself, and pods do not run here; see runners.
var upstreamChildren = []*inventory.Child{
	inventory.RunnerAccount, inventory.BackendAccount, inventory.RunnerRole, inventory.RunnerBinding,
	inventory.RunConfig, inventory.ProxyService, inventory.Proxy,
}

// runnerChildren are what a proxyrunner of ToolHive makes.
var runnerChildren = []*inventory.Child{inventory.Backend, inventory.HeadlessService, inventory.BackendService}

// upstreamNames returns what names the objects that ToolHive's operator makes for MCPServers and, if they are played, the proxyrunners.
func upstreamNames(played bool) func([]*v1beta1.MCPServer) ([]string, error) {
	children := upstreamChildren
	if played {
		children = slices.Concat(upstreamChildren, runnerChildren)
	}
	return func(servers []*v1beta1.MCPServer) ([]string, error) {
		var names []string
		for _, server := range servers {
			for _, made := range children {
				names = append(names, child(made.Kind.Kind, made.Name(server.Name)))
			}
		}
		return names, nil
	}
}
