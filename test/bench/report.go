// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// report is everything that was measured.
type report struct {
	// PerNamespace is how many of the MCPServers a namespace has; 0 for all in one.
	Servers, PerNamespace, Children, Workers, CPUs int
	// LoadBefore and LoadAfter are the load averages of the machine.
	LoadBefore, LoadAfter float64
	Took                  time.Duration

	Rounds []round
	// Raw are the answers of the raw applier to edits by hand.
	Raw answers
	// NoOperator is an idle time after the raw applier has ended: what the same objects cost without an operator.
	NoOperator stage
	Freehold   measurements
	// Foreign is empty when it is left out, and so is Outage.
	Foreign foreign
	// Edits are those of specs.
	Edits  latencies
	Outage outage
	// ToolHive is empty when its operator is left out. Later is its release where the bench plays the proxyrunners.
	ToolHive measurements
	Later    string

	Figures []figure
}

// measurements are what an operator did and used.
type measurements struct {
	// Create are its stages of that name, one for each round.
	Create []stage
	Idle   stage
	// Label is a foreign label on each Deployment, and LabelsLeft is how many of them stay.
	Label      stage
	LabelsLeft int
	// Images are edits of proxies' images by hand, and Scales are changes of the number of proxies with transport stdio.
	Images, Scales answers
	Restarts       []stage
	// Config is one edit of the MCPOIDCConfigs that all MCPServers refer to.
	Config stage
	// Delete is the deletion of all.
	Delete stage
}

// measured reports whether this run has measured the operator.
func (m measurements) measured() bool { return len(m.Create) > 0 }

// leaveOutToolHive forgets what was measured of its operator.
func (r *report) leaveOutToolHive() {
	r.ToolHive, r.Later = measurements{}, ""
	for i := range r.Rounds {
		r.Rounds[i].ToolHive = nil
	}
}

// round is one measurement of each. There is none of ToolHive's operator when that is left out.
type round struct{ Raw, Operator, ToolHive arrival }

// ratio sets the operator's time against the raw applier's.
func (r round) ratio(m milestone) float64 { return r.Operator[m].Seconds() / r.Raw[m].Seconds() }

// judge computes the figures and compares them with the thresholds. It fails when there is a threshold for
// something that nothing measures. What this run left out is neither good nor bad.
func (r *report) judge(thresholds map[string]threshold) error {
	r.Figures = r.figures()
	unused := maps.Clone(thresholds)
	for i := range r.Figures {
		f := &r.Figures[i]
		limit, ok := unused[f.Key]
		delete(unused, f.Key)
		if !ok || f.LeftOut {
			continue
		}
		if f.Max = limit.limit(r.Servers); f.Max != nil {
			// What is not a number is never good.
			f.Missed = !(f.Value <= *f.Max)
		}
	}
	if len(unused) > 0 {
		return fmt.Errorf("there are thresholds for %v, which nothing measures", slices.Sorted(maps.Keys(unused)))
	}
	return nil
}

// missed is how many thresholds are missed.
func (r *report) missed() (n int) {
	for _, f := range r.Figures {
		if f.Missed {
			n++
		}
	}
	return n
}
