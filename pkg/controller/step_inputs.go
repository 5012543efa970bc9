// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"hash/maphash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/pkg/writers"
)

func collectInput(p *pass, do *executor) (known bool) {
	p.input, known = do.inputs()
	return known
}

// inputs returns what the children are rendered from. known is false when an object that the MCPServer refers to has not been read
// yet; the MCPServer is woken when it has.
func (x *executor) inputs() (input render.Input, known bool) {
	v, configMaps := x.pass.Snapshot, x.configMaps
	input = render.Input{Server: v.Server, BackendProcess: v.BackendProcess()}
	if input.References, known = x.caches.References(v.Server); !known {
		return input, false
	}
	authz := authzReference(v.Server)
	configMaps.Use(x.ctx, v.Key, append(input.References.ConfigMaps(), authz)...)
	if input.AuthzConfigMap, known = configMaps.Get(v.Key.Namespace, authz); !known {
		return input, false
	}
	return input, input.References.AddBundles(func(name string) (*corev1.ConfigMap, bool) {
		return configMaps.Get(v.Key.Namespace, name)
	})
}

func recallSettled(p *pass, do *executor) bool {
	known := p.state.settled
	p.refusedBefore = len(p.refused)
	if p.blocked || !p.takeover.isIdle() || known == nil || known.input != inputHash(p.Snapshot, p.input) {
		return true
	}
	do.refuse(known.conflicts...)
	p.unwritten, p.unattempted = p.unwritten.Union(known.unwritten), known.unattempted
	p.observation = ofResult(p.Server, &known.result, nil)
	return false
}

func renderIntents(p *pass, do *executor) bool {
	result, err := render.Render(p.input, do.config.Options)
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		// The last good state stays.
		p.takeover.unrendered = true
		p.observation = status.Observation{Invalid: findings(invalid.Problems, metav1.ConditionFalse)}
		return false
	}
	if err != nil {
		klog.FromContext(do.ctx).Error(err, "Cannot render")
		p.retry, p.ended = retryBackoff, true
		return false
	}
	p.result = result
	p.takeover.replicas, p.takeover.unrendered = writersOfReplicas(result.Intents), len(result.Held) > 0
	p.references = writers.References(inventory.Proxy, result.References)
	return true
}

func forgetConfigMaps(p *pass, do *executor) {
	if len(p.result.Held) > 0 || p.queued != nil {
		return // The proxy keeps those that it has.
	}
	wanted := wantedConfigs(p.Key, p.result.Intents)
	for _, ref := range p.state.configMaps {
		if !slices.Contains(wanted, ref) {
			do.applier.Forget(ref)
			delete(p.state.unlabelled, ref)
		}
	}
	p.state.configMaps = wanted
}

// ofResult returns what to report about what was rendered.
func ofResult(server *v1beta1.MCPServer, result *render.Result, capped []status.Finding) status.Observation {
	spec := slices.Concat(notices(result.Notices), findings(result.Warnings, metav1.ConditionFalse))
	return status.Observation{
		Notices: withCappings(server, spec, capped),
		Held:    findings(result.Held, metav1.ConditionFalse),
		Hashes:  result.Hashes, SharedSessions: result.SharedSessions, Unshared: result.Unshared, URL: render.URL(server),
	}
}

func settle(p *pass, _ *executor) {
	if hasSettled(p) {
		told := *p.result
		told.Intents, told.Absent = nil, nil
		p.state.settled = &settledPass{inputHash(p.Snapshot, p.input), told, slices.Clone(p.refused[p.refusedBefore:]), p.unwritten.Clone(), p.unattempted}
	}
}

// settledPass is how a pass has left the children, when it left nothing to do but what is in conflict. A pass that finds them unchanged,
// and is to render the same, has nothing to do either: it goes on to the status. More than half of all passes are of that kind, since
// most events are about pods and the progress of rollouts.
type settledPass struct {
	// input is the hash of inputHash.
	input uint64
	// result is what was rendered, without the intents.
	result render.Result
	// conflicts stand until the input changes, and unwritten are the objects that they keep from being written.
	conflicts []error
	unwritten sets.Set[apply.ObjectRef]
	// unattempted are those of the pass.
	unattempted []apply.ObjectRef
}

var inputSeed = maphash.MakeSeed()

// inputHash identifies the input that children are rendered from and their state, as far as these decide about writes to
// them. The progress of pods makes no difference. Comparable within one process.
func inputHash(v *observed.Snapshot, input render.Input) uint64 {
	var h maphash.Hash
	h.SetSeed(inputSeed)
	maphash.WriteComparable(&h, intentOf(v.Server))
	if policy := input.AuthzConfigMap; policy != nil {
		maphash.WriteComparable(&h, policy.UID)
		maphash.WriteComparable(&h, policy.ResourceVersion)
	}
	hashReferences(&h, &input.References)
	maphash.WriteComparable(&h, input.BackendProcess)
	maphash.WriteComparable(&h, v.BackendServes())
	var children uint64 // A sum, since a pass that makes a child does not have it where the next one does.
	for ref, found := range v.Children {
		children += maphash.Comparable(inputSeed, struct {
			ref             apply.ObjectRef
			standing        uint64
			spoilt, deleted bool
		}{ref, found.EntriesHash(), found.Spoilt, found.Object.GetDeletionTimestamp() != nil})
	}
	maphash.WriteComparable(&h, children)
	return h.Sum64()
}

// intentOf identifies what an MCPServer asks for: its spec, labels and annotations, and whether it is to go. Comparable within one
// process.
func intentOf(server *v1beta1.MCPServer) uint64 {
	var h maphash.Hash
	h.SetSeed(inputSeed)
	maphash.WriteComparable(&h, server.UID)
	maphash.WriteComparable(&h, server.Generation)
	for _, values := range []map[string]string{server.Labels, server.Annotations} {
		maphash.WriteComparable(&h, len(values))
		for _, key := range slices.Sorted(maps.Keys(values)) {
			maphash.WriteComparable(&h, [2]string{key, values[key]})
		}
	}
	return h.Sum64()
}

// hasSettled reports whether a pass has left nothing to do about the children, and nothing that does not follow from the same
// input: it neither waits for a time, nor carries out a request of the MCPServer's author, nor takes the MCPServer over. It
// may have met with conflicts, which wait for a change. It may wait for the backend to begin with the proxy, but not if an answer
// has shown meanwhile that the backend is ready.
func hasSettled(p *pass) bool {
	unwanted := (&pruning{Snapshot: p.Snapshot, result: p.result}).unwanted()
	_, _, restarts := render.ImmediateRestart(p.Server)
	asked := func(key string) bool { return p.Server.Annotations[key] != "" }
	passes := func(refusal error) bool { return apply.ClassOf(refusal) != apply.ClassConflict }
	return !restarts && !p.blocked && !p.discovered && !slices.ContainsFunc(p.refused, passes) && p.held == 0 && len(p.capped) == 0 && len(p.forged)+len(p.confirmed) == 0 &&
		p.takeover.isIdle() && (p.Deployment() != nil || !findsBackend(p)) &&
		!slices.ContainsFunc([]string{v1beta1.AnnotationTake, v1beta1.AnnotationTakeRecord, v1beta1.AnnotationYield}, asked) &&
		!slices.ContainsFunc(unwanted, func(ref apply.ObjectRef) bool { return p.Object(ref) != nil })
}

// hashReferences adds the referenced objects of an MCPServer to the hash of an input.
func hashReferences(h *maphash.Hash, in *render.References) {
	for _, state := range in.States() {
		maphash.WriteComparable(h, state)
	}
	for _, kind := range slices.Sorted(maps.Keys(in.Unavailable)) {
		maphash.WriteComparable(h, in.Unavailable[kind])
	}
}

// enforced is writers.Enforced.
func enforced(v *observed.Snapshot) string {
	if deployment := v.Deployment(); deployment != nil {
		return writers.Enforced(deployment.Annotations, true)
	}
	return writers.Enforced(nil, false)
}

// endpointMoves is render.EndpointMoves.
func endpointMoves(v *observed.Snapshot) bool {
	var proxy, backend *workload.Endpoint
	if deployment := v.Deployment(); deployment != nil {
		proxy = &deployment.Template.Endpoint
	}
	if set := v.StatefulSet(); set != nil {
		backend = &set.Template.Endpoint
	}
	return render.EndpointMoves(v.Server, proxy, backend)
}

// authzReference returns the ConfigMap that an MCPServer's authorization policy is in; empty for none.
func authzReference(server *v1beta1.MCPServer) string {
	if a := server.Spec.AuthzConfig; a != nil && a.ConfigMap != nil {
		return a.ConfigMap.Name
	}
	return ""
}

// wantedConfigs returns the ConfigMaps that are wanted.
func wantedConfigs(server cache.ObjectName, intents []render.Intent) (wanted []apply.ObjectRef) {
	for _, intent := range intents {
		if intent.Kind == managers.ConfigMap {
			wanted = append(wanted, apply.NewObjectRef(intent.Kind, server.Namespace, intent.Name))
		}
	}
	return wanted
}
