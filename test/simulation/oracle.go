// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// oracle holds every change that an operator or the plugin makes against what Freehold promises.
type oracle struct {
	s *Simulation
	// mayTake are the managers whose fields operators may take: those that a request of a user names, and those of ToolHive. The
	// number of pods that capped reports may be taken from any manager.
	mayTake func(manager string) bool
	// rolls counts what replaces pods, by workload: changes of the template, deletions of pods by operators, and deletions of the
	// workload itself.
	rolls map[string]int
	// generations are those that MCPServers have reached. A source that is newer is forged or restored.
	generations map[types.UID]int64
	// stdio are the names of the MCPServers that have, or had, the transport stdio.
	stdio map[string]bool
	// live are the MCPServers, Deployments and ReplicaSets that there are, by UID.
	live map[types.UID]runtime.Object
	// processes are those of pods, by the pod, to which a proxy can be attached.
	processes map[types.NamespacedName]string
	// taken are the ConfigMaps that others than operators have deleted.
	taken map[string]bool
	// wanted is what operators want of their children.
	wanted wanted
	// tempo has the times of recent writes, and specs counts what users, and other clients than operators, have asked for.
	tempo tempo
	specs int
	// unanswered are the writes of operators that were carried out, until their clients have an answer, and what they write of a child.
	unanswered map[*apiserver.Request]string
	// deleted are the children that operators have deleted, by kind and name, and last has the write that has changed each object last.
	deleted map[string]deleted
	last    map[types.UID]*apiserver.Request
	// salted are the names of ConfigMaps whose document is under another name than its own, and tooLarge the versions of MCPServers that are.
	salted   map[string]bool
	tooLarge map[version]bool
	// violations are what was promised and not kept.
	violations []string
}

func newOracle(s *Simulation) *oracle {
	o := &oracle{
		s: s, mayTake: func(string) bool { return false }, live: map[types.UID]runtime.Object{}, processes: map[types.NamespacedName]string{},
	}
	o.forget()
	return o
}

// forget forgets objects that are gone.
func (o *oracle) forget() {
	o.rolls, o.generations, o.stdio, o.taken = map[string]int{}, map[types.UID]int64{}, map[string]bool{}, map[string]bool{}
	o.wanted, o.tempo = wanted{map[author]fields{}, map[types.UID]types.UID{}}, tempo{}
	o.salted, o.tooLarge = map[string]bool{}, map[version]bool{}
	o.deleted, o.last, o.unanswered = map[string]deleted{}, map[types.UID]*apiserver.Request{}, map[*apiserver.Request]string{}
}

func (o *oracle) violated(r *apiserver.Request, why string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf("step %d: %s: %s", o.s.Steps, r, fmt.Sprintf(why, args...)))
}

// isOurs reports whether an operator or the plugin has sent a request.
func isOurs(r *apiserver.Request) bool {
	return strings.HasPrefix(r.Client, "operator-") || isPlugin(r)
}

func isPlugin(r *apiserver.Request) bool { return strings.HasPrefix(r.Client, "plugin-") }

// committed judges a change.
func (o *oracle) committed(r *apiserver.Request, event watch.EventType, obj, old runtime.Object) {
	o.s.wrote = time.Now()
	o.count(r, event, obj, old)
	o.keep(event, obj)
	o.last[access(obj).GetUID()] = r
	o.checkAside(r, event, obj)
	o.checkSize(r, obj)
	if r.Kind.GroupKind() == managers.MCPServer {
		o.generations[access(obj).GetUID()] = access(obj).GetGeneration()
		if isStdio(obj) {
			o.stdio[access(obj).GetName()] = true
		}
	}
	if event == watch.Deleted && r.Kind.Kind == "ConfigMap" && !isOurs(r) {
		o.taken[access(obj).GetName()] = true
	}
	if !isOurs(r) {
		// A child that a user deletes is another one afterwards, and so is what refers to it.
		if r.Kind.Group == toolhive || event == watch.Deleted && isChild(r.Kind) && !slices.Contains([]string{cleaner, collector, squatter}, r.Client) {
			o.specs++
		}
		return
	}
	o.checkTempo(r, event, obj, old)
	o.checkDeletion(r, event, obj)
	switch r.Verb {
	case "apply":
		o.checkApply(r, obj, old)
	case "patch":
		editor := managers.Ownership
		if isPlugin(r) {
			editor = managers.Plugin
		}
		if r.Manager != editor {
			o.violated(r, "a patch under the name of another manager than %s", editor)
		}
		o.checkClaims(r, obj, old)
	case "delete":
		if options := string(r.Body); !strings.Contains(options, `"uid"`) || !strings.Contains(options, `"resourceVersion"`) {
			o.violated(r, "a deletion without preconditions: %s", options)
		}
	case "create":
	default:
		o.violated(r, "no write is made that way")
	}
	if event == watch.Deleted {
		o.checkDependents(r, obj)
	} else {
		o.checkDependencies(r, obj)
	}
}

// checkApply holds an apply against the rules for writes: no force, a precondition, no value of others, no older view.
func (o *oracle) checkApply(r *apiserver.Request, obj, old runtime.Object) {
	if r.Force {
		o.violated(r, "a forced apply")
	}
	if isPlugin(r) && r.Manager != managers.Plugin {
		o.violated(r, "an apply of the plugin under another name than %s", managers.Plugin)
	}
	if body := string(r.Body); !strings.Contains(body, `"resourceVersion"`) {
		o.violated(r, "an apply without a precondition")
	}
	if old == nil {
		return
	}
	owner := metav1.GetControllerOf(access(old)) // ToolHive's operator gives some to the StatefulSet.
	if isChild(r.Kind) && (owner == nil || owner.Kind == managers.MCPServer.Kind) && !o.isAnMCPServers(access(old)) {
		o.violated(r, "an apply to what is no MCPServer's")
	}
	if access(old).GetDeletionTimestamp() != nil && r.Manager != managers.Finalizer && !isStatus(r) && !isConfig(r) {
		o.violated(r, "an apply to an object that is being deleted")
	}
	o.checkForeign(r, obj, old)
	if r.Subresource == "" {
		o.checkSource(r, obj, old)
	}
}

func isStatus(r *apiserver.Request) bool { return r.Subresource == "status" }

func isConfig(r *apiserver.Request) bool { return managers.ConfigOf(r.Kind.GroupKind()) != nil }

// checkForeign finds values of others that a write has changed.
func (o *oracle) checkForeign(r *apiserver.Request, obj, old runtime.Object) {
	foreign := &fieldpath.Set{}
	for _, entry := range access(old).GetManagedFields() {
		foreign = foreign.Union(o.protected(r, &entry, old))
	}
	if foreign.Empty() {
		return
	}
	lost := changes(o.s, r.Kind, old, obj).Difference(o.s.policy.changedBy(r)).Intersection(foreign.Leaves())
	if !lost.Empty() {
		o.violated(r, "values of others were changed: %s", lost)
	}
}

// checkSource finds a write from an older view of the MCPServer, or of what it refers to.
func (o *oracle) checkSource(r *apiserver.Request, obj, old runtime.Object) {
	from, to := access(old).GetAnnotations(), access(obj).GetAnnotations()
	had, _ := apply.ParseReferences(from[v1beta1.AnnotationReferences])
	has, _ := apply.ParseReferences(to[v1beta1.AnnotationReferences])
	if len(had.Newer(has)) > 0 {
		o.violated(r, "references %s were replaced by %s", had, has)
	}
	before, known := apply.ParseSource(from[v1beta1.AnnotationSource])
	after, ok := apply.ParseSource(to[v1beta1.AnnotationSource])
	if !known || !ok || before.UID != after.UID || after.Generation >= before.Generation {
		return
	}
	if o.generations[before.UID] >= before.Generation {
		o.violated(r, "generation %d was replaced by %d", before.Generation, after.Generation)
	}
}

// report fails the test with what was violated.
func (o *oracle) report() {
	slices.Sort(o.violations)
	for _, v := range slices.Compact(o.violations) {
		o.s.t.Error(v)
	}
}
