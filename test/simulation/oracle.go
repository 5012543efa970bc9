// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// oracle holds every change that an operator makes against what Freehold promises.
type oracle struct {
	s *Simulation
	// mayTake are the managers whose fields operators may take: those that a request of a user names, and those of ToolHive.
	mayTake func(manager string) bool
	// rolls counts the changes of the pod templates, by workload.
	rolls map[string]int
	// generations are those that MCPServers have reached. A source that is newer is forged or restored.
	generations map[types.UID]int64
	// mayRestore is set where backups bring back earlier objects, with their sources.
	mayRestore bool
	// taken are the ConfigMaps that others than operators have deleted.
	taken map[string]bool
	// violations are what was promised and not kept.
	violations []string
}

func newOracle(s *Simulation) *oracle {
	return &oracle{
		s: s, mayTake: func(string) bool { return false }, rolls: map[string]int{}, generations: map[types.UID]int64{},
		taken: map[string]bool{},
	}
}

// forget forgets objects that are gone.
func (o *oracle) forget() {
	o.rolls, o.generations, o.taken = map[string]int{}, map[types.UID]int64{}, map[string]bool{}
}

func (o *oracle) violated(r *apiserver.Request, why string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf("step %d: %s: %s", o.s.Steps, r, fmt.Sprintf(why, args...)))
}

// committed judges a change.
func (o *oracle) committed(r *apiserver.Request, event watch.EventType, obj, old runtime.Object) {
	o.s.wrote = time.Now()
	o.count(event, obj, old)
	if r.Kind.GroupKind() == managers.MCPServer {
		o.generations[access(obj).GetUID()] = access(obj).GetGeneration()
	}
	if event == watch.Deleted && r.Kind.Kind == "ConfigMap" && !strings.HasPrefix(r.Client, "operator-") {
		o.taken[access(obj).GetName()] = true
	}
	if !strings.HasPrefix(r.Client, "operator-") {
		return
	}
	switch r.Verb {
	case "apply":
		o.checkApply(r, obj, old)
	case "patch":
		if r.Manager != managers.Ownership {
			o.violated(r, "a patch under the name of another manager than %s", managers.Ownership)
		}
		if old != nil && r != o.s.mutated && !sameButClaims(obj, old) {
			o.violated(r, "an edit of managedFields changed something else")
		}
	case "delete":
		if options := string(r.Body); !strings.Contains(options, `"uid"`) || !strings.Contains(options, `"resourceVersion"`) {
			o.violated(r, "a deletion without preconditions: %s", options)
		}
	case "create":
	default:
		o.violated(r, "no write is made that way")
	}
	if event != watch.Deleted {
		o.checkDependencies(r, obj)
	}
}

// count counts what rolls pods out.
func (o *oracle) count(event watch.EventType, obj, old runtime.Object) {
	if event != watch.Modified {
		return
	}
	before, after := templateOf(old), templateOf(obj)
	if after != nil && text(before) != text(after) {
		o.rolls[obj.GetObjectKind().GroupVersionKind().Kind+"/"+access(obj).GetName()]++
	}
}

func templateOf(obj runtime.Object) *corev1.PodTemplateSpec {
	switch workload := obj.(type) {
	case *appsv1.Deployment:
		return &workload.Spec.Template
	case *appsv1.StatefulSet:
		return &workload.Spec.Template
	}
	return nil
}

// checkApply holds an apply against the rules for writes: no force, a precondition, no value of others, no older view.
func (o *oracle) checkApply(r *apiserver.Request, obj, old runtime.Object) {
	if r.Force {
		o.violated(r, "a forced apply")
	}
	if body := string(r.Body); !strings.Contains(body, `"resourceVersion"`) {
		o.violated(r, "an apply without a precondition")
	}
	if old == nil {
		return
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
		if strings.HasPrefix(entry.Manager, "freehold-") || o.mayTake(entry.Manager) {
			continue
		}
		fields, err := ownership.Fields(&entry)
		if err != nil {
			o.s.t.Fatal(err)
		}
		foreign = foreign.Union(fields)
	}
	if foreign.Empty() {
		return
	}
	before, err := r.Kind.Fields.ObjectToTyped(old)
	if err != nil {
		o.s.t.Fatal(err)
	}
	after, err := r.Kind.Fields.ObjectToTyped(obj)
	if err != nil {
		o.s.t.Fatal(err)
	}
	comparison, err := before.Compare(after)
	if err != nil {
		o.s.t.Fatal(err)
	}
	if lost := comparison.Modified.Union(comparison.Removed).Intersection(foreign.Leaves()); !lost.Empty() {
		o.violated(r, "values of others were changed: %s", lost)
	}
}

// checkSource finds a write from an older view of the MCPServer.
func (o *oracle) checkSource(r *apiserver.Request, obj, old runtime.Object) {
	before, known := apply.ParseSource(access(old).GetAnnotations()[v1beta1.AnnotationSource])
	after, ok := apply.ParseSource(access(obj).GetAnnotations()[v1beta1.AnnotationSource])
	if o.mayRestore || !known || !ok || before.UID != after.UID || after.Generation >= before.Generation {
		return
	}
	if o.generations[before.UID] >= before.Generation {
		o.violated(r, "generation %d was replaced by %d", before.Generation, after.Generation)
	}
}

// checkDependencies finds a proxy whose pods name a ConfigMap of ours that does not exist.
func (o *oracle) checkDependencies(r *apiserver.Request, obj runtime.Object) {
	deployment, ok := obj.(*appsv1.Deployment)
	if !ok {
		return
	}
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil || !strings.HasPrefix(volume.ConfigMap.Name, deployment.Name+"-runconfig") {
			continue
		}
		// Nobody can help it if another one deletes it while the write is on its way.
		exists := o.s.Server.Exists(o.s.Server.KindOf("", "ConfigMap"), deployment.Namespace, volume.ConfigMap.Name)
		if !exists && !o.taken[volume.ConfigMap.Name] {
			o.violated(r, "the proxy names ConfigMap %s, which does not exist", volume.ConfigMap.Name)
		}
	}
}

// sameButClaims reports whether two states differ in nothing but managedFields.
func sameButClaims(a, b runtime.Object) bool {
	return withoutClaims(a) == withoutClaims(b)
}

func withoutClaims(obj runtime.Object) string {
	obj = obj.DeepCopyObject()
	access(obj).SetManagedFields([]metav1.ManagedFieldsEntry{})
	access(obj).SetResourceVersion("")
	return text(obj)
}

// report fails the test with what was violated.
func (o *oracle) report() {
	slices.Sort(o.violations)
	for _, v := range slices.Compact(o.violations) {
		o.s.t.Error(v)
	}
}
