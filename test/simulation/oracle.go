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
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// oracle holds every change that an operator or the kubectl plugin makes against what Freehold promises.
type oracle struct {
	s *Simulation
	// mayTake are the managers whose fields of an object may be taken: those that a request of a user names, and those of ToolHive.
	mayTake func(manager string, of metav1.Object) bool
	// stdio are the names of the MCPServers that have, or have had, the transport stdio.
	stdio map[string]bool
	// rolls counts the changes of the pod templates, by workload, and the pods and workloads that operators delete.
	rolls map[string]int
	// generations are those that MCPServers have reached. A source that is newer is forged or restored.
	generations map[types.UID]int64
	// proxies are the Deployments that there are.
	proxies map[types.NamespacedName]*appsv1.Deployment
	// leaving are the names of the MCPServers that are being deleted, or are gone: their children go in any order.
	leaving map[string]bool
	// taken are the ConfigMaps that others than operators have deleted.
	taken map[string]bool
	// violations are what was promised and not kept.
	violations []string
}

func newOracle(s *Simulation) *oracle {
	return &oracle{
		s: s, mayTake: func(string, metav1.Object) bool { return false }, rolls: map[string]int{}, generations: map[types.UID]int64{},
		taken: map[string]bool{}, stdio: map[string]bool{}, leaving: map[string]bool{}, proxies: map[types.NamespacedName]*appsv1.Deployment{},
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
	o.count(r, event, obj, old)
	if r.Kind.GroupKind() == managers.MCPServer {
		o.generations[access(obj).GetUID()] = access(obj).GetGeneration()
		o.leaving[access(obj).GetName()] = event == watch.Deleted || access(obj).GetDeletionTimestamp() != nil
		if strings.Contains(text(obj), `"transport":"stdio"`) {
			o.stdio[access(obj).GetName()] = true
		}
	}
	if deployment, ok := obj.(*appsv1.Deployment); ok {
		key := types.NamespacedName{Namespace: deployment.Namespace, Name: deployment.Name}
		if o.proxies[key] = deployment; event == watch.Deleted {
			delete(o.proxies, key)
		}
	}
	plugin := strings.HasPrefix(r.Client, "plugin-")
	if !plugin && !ofOperator(r) {
		if event == watch.Deleted && r.Kind.Kind == "ConfigMap" {
			o.taken[access(obj).GetName()] = true
		}
		return
	}
	if event == watch.Deleted {
		o.checkNames(r, obj)
	}
	switch r.Verb {
	case "apply":
		o.checkApply(r, obj, old)
	case "patch":
		if want := editor(plugin); r.Manager != want {
			o.violated(r, "a patch under the name of another manager than %s", want)
		}
		if old != nil && r != o.s.mutated && !sameButClaims(obj, old) {
			o.violated(r, "an edit of managedFields changed something else")
		}
		if !strings.Contains(string(r.Body), "/metadata/resourceVersion") {
			o.violated(r, "an edit of managedFields without a precondition")
		}
		if old != nil {
			o.checkClaims(r, access(obj), access(old))
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

// count counts what replaces pods: changes of templates, and the pods and workloads that operators delete or evict.
func (o *oracle) count(r *apiserver.Request, event watch.EventType, obj, old runtime.Object) {
	template, workload := templateOf(obj), obj.GetObjectKind().GroupVersionKind().Kind+"/"+access(obj).GetName()
	switch pod, isPod := obj.(*corev1.Pod); {
	case event == watch.Modified && template != nil && text(templateOf(old)) != text(template):
		o.rolls[workload]++
	case event != watch.Deleted || !ofOperator(r):
	case isPod:
		o.rolls["Pods of "+pod.GenerateName+pod.Labels["app"]]++
	case template != nil:
		o.rolls["deletions of "+workload]++
	}
}

func ofOperator(r *apiserver.Request) bool { return strings.HasPrefix(r.Client, "operator-") }

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
		if strings.HasPrefix(entry.Manager, "freehold-") || o.mayTake(entry.Manager, access(old)) {
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

// checkClaims finds fields that an edit of managedFields has taken from others. Whoever owns a record that only Freehold makes, of the
// source of an object for example, owns a copy of what Freehold has lost.
func (o *oracle) checkClaims(r *apiserver.Request, obj, old metav1.Object) {
	for _, entry := range old.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "freehold-") || entry.Manager == managers.Plugin || o.mayTake(entry.Manager, old) {
			continue
		}
		had, err := ownership.Fields(&entry)
		if err != nil {
			o.s.t.Fatal(err)
		}
		if had.Has(sourceRecord) || had.Has(replicasRecord) {
			continue
		}
		has := &fieldpath.Set{}
		for _, now := range obj.GetManagedFields() {
			if now.Manager == entry.Manager && now.Operation == entry.Operation && now.Subresource == entry.Subresource {
				if has, err = ownership.Fields(&now); err != nil {
					o.s.t.Fatal(err)
				}
			}
		}
		if lost := had.Difference(has); !lost.Empty() {
			o.violated(r, "claims of %s were taken: %s", entry.Manager, lost)
		}
	}
}

var (
	sourceRecord   = fieldpath.MakePathOrDie("metadata", "annotations", v1beta1.AnnotationSource)
	replicasRecord = fieldpath.MakePathOrDie("metadata", "annotations", v1beta1.AnnotationReplicasSource)
)

// editor returns the manager that edits managedFields.
func editor(plugin bool) string {
	if plugin {
		return managers.Plugin
	}
	return managers.Ownership
}

// checkSource finds a write from an older view of the MCPServer.
func (o *oracle) checkSource(r *apiserver.Request, obj, old runtime.Object) {
	before, known := apply.ParseSource(access(old).GetAnnotations()[v1beta1.AnnotationSource])
	after, ok := apply.ParseSource(access(obj).GetAnnotations()[v1beta1.AnnotationSource])
	if !known || !ok || before.UID != after.UID || after.Generation >= before.Generation {
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
	for _, name := range configMapsOf(deployment.Name, &deployment.Spec.Template) {
		// Nobody can help it if another one deletes it while the write is on its way.
		if !o.s.Server.Exists(o.s.Server.KindOf("", "ConfigMap"), deployment.Namespace, name) && !o.taken[name] {
			o.violated(r, "the proxy names ConfigMap %s, which does not exist", name)
		}
	}
}

// checkNames finds a ConfigMap that was deleted though the template of a proxy names it.
func (o *oracle) checkNames(r *apiserver.Request, obj runtime.Object) {
	if _, ok := obj.(*corev1.ConfigMap); !ok {
		return
	}
	gone := access(obj)
	for _, deployment := range o.proxies {
		if deployment.Namespace == gone.GetNamespace() && deployment.DeletionTimestamp == nil && !o.leaving[deployment.Name] && slices.Contains(configMapsOf(deployment.Name, &deployment.Spec.Template), gone.GetName()) {
			o.violated(r, "the proxy %s names it", deployment.Name)
		}
	}
}

// configMapsOf returns the ConfigMaps of Freehold's that the template of a proxy names.
func configMapsOf(server string, template *corev1.PodTemplateSpec) (names []string) {
	for _, volume := range template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		for _, child := range []*inventory.Child{inventory.RunConfig, inventory.InlineAuthz} {
			if strings.HasPrefix(volume.ConfigMap.Name, child.Name(server)+"-") {
				names = append(names, volume.ConfigMap.Name)
			}
		}
	}
	return names
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
