// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
)

// logShown is how much of the operator's log is shown when a measurement fails, in bytes.
const logShown = 8 << 10

// subject is the operator that is measured.
type subject struct {
	site    *site
	options operator.Options
	process *operator.Process
	log     *os.File
	out     io.Writer
}

// stage is what the operator did and used in one part of a run.
type stage struct {
	Writes tally
	Use    use
	// Took is how long it took, where that has an end by itself.
	Took time.Duration
}

// startSubject starts the operator as it is deployed, but without a lease. The caller closes it.
func (b *bench) startSubject(ctx context.Context, s *site) (*subject, error) {
	log, err := os.Create(filepath.Join(b.dir, "operator.log"))
	if err != nil {
		return nil, err
	}
	o := &subject{site: s, log: log, out: b.progress, options: operator.Options{
		Binary: b.settings.operator, Kubeconfig: s.kubeconfig, Log: log, Env: b.deployed.env,
		Args: append(b.deployed.args, fmt.Sprintf("--workers=%d", b.settings.workers)),
	}}
	if o.process, err = operator.Start(ctx, o.options); err != nil {
		return nil, errors.Join(err, o.close(true))
	}
	if err := o.settle(ctx, 0); err != nil {
		return nil, errors.Join(err, o.close(true))
	}
	return o, nil
}

// close ends the operator and, after a failure, shows the end of its log.
func (o *subject) close(failed bool) error {
	var err error
	if o.process != nil {
		err = o.process.Stop()
	}
	if failed || err != nil {
		text, _ := os.ReadFile(o.log.Name())
		_, _ = fmt.Fprintf(o.out, "the operator's log:\n%s\n", text[max(0, len(text)-logShown):])
	}
	return errors.Join(err, o.log.Close())
}

// observe runs a part of a measurement and tells what the operator did and used meanwhile.
func (o *subject) observe(ctx context.Context, part func(ctx context.Context) error) (stage, error) {
	mark, err := o.site.cluster.AuditMark(ctx)
	if err != nil {
		return stage{}, err
	}
	meter, err := newMeter(o.process.PID())
	if err != nil {
		return stage{}, err
	}
	if err := part(ctx); err != nil {
		return stage{}, err
	}
	used, err := meter.read()
	if err != nil {
		return stage{}, err
	}
	writes, _, err := o.requests(ctx, mark)
	return stage{Writes: writes, Use: used}, err
}

// requests counts what the operator has sent since the mark, and returns the mark of the end.
func (o *subject) requests(ctx context.Context, mark audit.Mark) (tally, audit.Mark, error) {
	if _, err := o.site.cluster.AuditMark(ctx); err != nil { // all that was answered is in the log now
		return tally{}, mark, err
	}
	events, end, err := o.site.audit.Since(mark, audit.ServiceAccount(operator.Namespace, operator.ServiceAccount))
	return count(events), end, err
}

// created is the outcome of create.
type created struct {
	stage
	times arrival
}

// create makes MCPServers and waits until all are Ready and the operator rests.
func (o *subject) create(ctx context.Context, n int) (done created, err error) {
	done.stage, err = o.observe(ctx, func(ctx context.Context) error {
		var err error
		done.times, err = o.site.converge(ctx, measured, n, func(*v1beta1.MCPServer) {},
			childrenExist, proxiesReady, serversReady)
		if err != nil {
			return err
		}
		return o.settle(ctx, n)
	})
	return done, err
}
