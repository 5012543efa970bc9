// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
)

// freehold is our own operator. What is here needs its metrics.
type freehold struct {
	subject
	// metrics returns those of the process that runs.
	metrics func(ctx context.Context) (string, error)
	output  *os.File
}

// startFreehold starts the operator as it is deployed, but without a lease, and with this environment. The caller closes it.
func (b *bench) startFreehold(ctx context.Context, s *site, env []string) (*freehold, error) {
	output, err := os.Create(filepath.Join(b.dir, "operator.log"))
	if err != nil {
		return nil, err
	}
	options := operator.Options{
		Binary: b.settings.operator, Kubeconfig: s.kubeconfig, Log: output, Env: env,
		Args: append(b.deployed.args, fmt.Sprintf("--workers=%d", b.settings.workers)),
	}
	o := &freehold{output: output, subject: subject{
		name: "the operator", site: s, log: output.Name(), out: b.progress,
		account: audit.ServiceAccount(operator.Namespace, operator.ServiceAccount),
	}}
	o.start = func(ctx context.Context) (process, error) {
		p, err := operator.Start(ctx, options)
		if err != nil {
			return nil, err
		}
		o.metrics = p.Metrics
		return p, nil
	}
	o.settled = func(ctx context.Context, looks int, act func(ctx context.Context) error) error {
		before, err := o.activity(ctx)
		if err != nil {
			return err
		}
		if err := act(ctx); err != nil {
			return err
		}
		return o.settle(ctx, before.looks+looks)
	}
	if o.process, err = o.start(ctx); err != nil {
		return nil, errors.Join(err, o.close(true))
	}
	if err := o.settle(ctx, 0); err != nil {
		return nil, errors.Join(err, o.close(true))
	}
	return o, nil
}

func (o *freehold) close(failed bool) error {
	return errors.Join(o.subject.close(failed), o.output.Close())
}

// restarts measures restarts, each of which ends when every MCPServer has been looked at.
func (o *freehold) restarts(ctx context.Context, n int) ([]stage, error) {
	return o.repeat(ctx, func(ctx context.Context) (bool, error) {
		a, err := o.activity(ctx)
		return a.looks >= n && a.waiting == 0, err
	})
}
