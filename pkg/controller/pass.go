// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/turns"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// retry says whether a key is looked at again without an event.
type retry int

const (
	retryNever retry = iota
	// retryCatchUp waits for the cache.
	retryCatchUp
	retryBackoff
)

// pass is one reconciliation of one MCPServer: what is seen and remembered, what the steps have decided so far, and what came of it.
type pass struct {
	*observed.Snapshot
	state *serverState
	results

	// takeover decides what to do with objects that ToolHive has made.
	takeover takeoverState
	// resolution is how conflicts are to be settled.
	resolution *resolution
	// input is what the children are rendered from, and result what was rendered; nil when nothing was.
	input  render.Input
	result *render.Result
	// references are the objects that the proxy is rendered from besides the MCPServer.
	references apply.References
	// forged are the children whose sources are newer than the MCPServer, as the API server has confirmed it after they were
	// seen. confirmed are those that record states of references that never existed.
	forged, confirmed []apply.ObjectRef
	// blocked is set when the finalizer is refused, so that no child is written.
	blocked bool
	// refusedBefore is how many writes were refused before the steps that bring the children about.
	refusedBefore int
	// unattempted are the objects that neither this pass nor this operator has tried to write, so that it is not known whether others own
	// fields of them.
	unattempted []apply.ObjectRef
	// queued says what the proxy waits for, if it waits for its turn to be replaced; queuedAgain is set when its last turn ended with a
	// refusal.
	queued      *turns.Wait
	queuedAgain bool
	// capped are numbers of replicas that were set from outside and do not stay.
	capped []status.Finding
	// observation is what the status is computed from.
	observation status.Observation
	// ended is set when there is nothing to report.
	ended bool
	retry retry
}

// results are what has come of a pass so far.
type results struct {
	// refused are the writes that were not made or not accepted.
	refused []error
	// altered are the findings about writes that are stored otherwise than sent and serve all the same.
	altered []status.Finding
	// answered is set when one of them is new, and not what a write met with before.
	answered bool
	// unwritten are the objects of intents that were refused, or held back because of a refused one; held counts the latter.
	unwritten sets.Set[apply.ObjectRef]
	held      int
	// attempted are the parts of objects that the pass has tried to write.
	attempted sets.Set[claimKey]
	// made is set when an object was made, or is still to be made. wrote is set when a child was written: admission may have changed
	// what another writer of it had found in place, which the next pass sees.
	made, wrote bool
	// discovered reports that the pass has found an object that no informer shows. The next one, which begins at once, knows it.
	discovered bool
	// wake is when to look again in any case; 0 for not.
	wake time.Duration
}

// claimKey is a writer's part of an object.
type claimKey struct {
	writer string
	object apply.ObjectRef
}

// isRepeatedSoon reports whether a pass has not done its work, for a reason that may be over in a moment: what it found comes first,
// another client was faster, or the API server was overloaded.
func (r *results) isRepeatedSoon() bool {
	return r.discovered || r.wake > 0 && r.wake <= shortly && slices.ContainsFunc(r.refused, func(refusal error) bool {
		class := apply.ClassOf(refusal)
		return class == apply.ClassMoved || class == apply.ClassTransient
	})
}

// shortly is how soon a pass is repeated that keeps its level: it has the first attempts after a refusal that passes, and not one that lasts.
const shortly = 2 * time.Second

// requestOf returns what writes an intent. The ConfigMaps that the intent refers to have been written, if they are to be.
func requestOf(p *pass, intent *render.Intent) apply.Request {
	render.PinConfigs(*intent, func(name string) types.UID { return configUID(p.Snapshot, name) })
	ref := apply.NewObjectRef(intent.Kind, p.Key.Namespace, intent.Name)
	if live := p.Object(ref); live == nil || ownersOfReplicas(live, intent.Child.Replicas).isOnly(intent.Writer) {
		p.result.StartAtZero(intent)
	}
	return apply.Request{
		Object:    ref,
		Config:    intent.Config,
		Source:    apply.Source{References: writers.References(intent.Child, p.result.References)},
		Ownership: apply.Ownership{Unset: stillSet(*intent, p.Object(ref))},
		Preserve:  intent.Preserve(),
	}
}

// stillSet returns which of the fields that an intent unsets may be set. The cache keeps enough to know that of a rolling update; for any
// other field the object would have to be read.
func stillSet(intent render.Intent, live metav1.Object) []string {
	if set, ok := live.(*workload.StatefulSet); ok && set.UpdateStrategy.RollingUpdate == nil {
		return slices.DeleteFunc(slices.Clone(intent.Unset), func(path string) bool { return path == render.RollingUpdatePath })
	}
	return intent.Unset
}

// configMapRef names a ConfigMap of the MCPServer's namespace.
func configMapRef(v *observed.Snapshot, name string) apply.ObjectRef {
	return apply.NewObjectRef(managers.ConfigMap, v.Key.Namespace, name)
}

// configUID returns the UID of a ConfigMap as this pass saw or left it; empty when there is none.
func configUID(v *observed.Snapshot, name string) types.UID {
	live := v.Object(configMapRef(v, name))
	if live == nil {
		return ""
	}
	return live.GetUID()
}
