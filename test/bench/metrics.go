// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// restTime is how long the operator must have looked at nothing to count as being at rest. It is longer than the
// wait of any MCPServer for the operator's own caches.
const restTime = 3 * time.Second

// metricsInterval is how often the operator's metrics are read. To answer takes it about 15 ms of CPU time, which counts as its own, and
// nothing asks ToolHive's operator for any.
const metricsInterval = time.Second

// activity is what the operator's metrics say about its work. Only they can tell that something was looked at and
// found to be right: it leaves no trace outside.
type activity struct {
	// looks is how often an MCPServer was looked at: each look ends with the decision about the status.
	looks int
	// waiting is how many MCPServers wait to be looked at.
	waiting int
	// working tells whether one is being looked at. It lags behind by up to half a second.
	working bool
}

func (o *freehold) activity(ctx context.Context) (a activity, err error) {
	text, err := o.metrics(ctx)
	if err != nil {
		return a, fmt.Errorf("cannot read the operator's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return a, fmt.Errorf("cannot read the operator's metrics: %w", err)
	}
	queue := families["workqueue_depth"].GetMetric()
	if len(queue) == 0 {
		return a, errors.New("the operator has no metric workqueue_depth")
	}
	for _, m := range queue {
		a.waiting += int(m.GetGauge().GetValue())
	}
	for _, m := range families["workqueue_unfinished_work_seconds"].GetMetric() {
		a.working = a.working || m.GetGauge().GetValue() > 0
	}
	// There is none before the first write is decided on.
	for _, m := range families["freehold_writes_total"].GetMetric() {
		if label(m, "writer") == managers.Status {
			a.looks += int(m.GetCounter().GetValue())
		}
	}
	return a, nil
}

func label(m *dto.Metric, name string) string {
	i := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name })
	if i < 0 {
		return ""
	}
	return m.GetLabel()[i].GetValue()
}

// settle waits until the operator has looked at a number of MCPServers and is at rest.
func (o *freehold) settle(ctx context.Context, looks int) error {
	var last activity
	since := time.Now()
	return o.poll(ctx, func(a activity) bool {
		if a.waiting > 0 || a.working || a != last {
			last, since = a, time.Now()
		}
		return a.looks >= looks && time.Since(since) >= restTime
	})
}

func (o *freehold) poll(ctx context.Context, done func(activity) bool) error {
	ticker := time.NewTicker(metricsInterval)
	defer ticker.Stop()
	for {
		a, err := o.activity(ctx)
		if err != nil {
			return err
		}
		if done(a) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the operator has made %d looks, %d wait: %w", a.looks, a.waiting, context.Cause(ctx))
		case <-o.process.Done():
			return errors.New("the operator has ended")
		case <-ticker.C:
		}
	}
}
