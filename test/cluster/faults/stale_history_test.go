// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// specs are the specs that MCPServers had, by the text of the generation.
type specs map[string]v1beta1.MCPServerSpec

// add takes up an MCPServer as the API server answered an edit with it.
func (s specs) add(server *v1beta1.MCPServer) {
	s[apply.Source{UID: server.UID, Generation: server.Generation}.String()] = server.Spec
}

// last is the spec that the MCPServer of a source has had since its last edit.
func (s specs) last(source apply.Source) (spec v1beta1.MCPServerSpec) {
	for text := range s {
		if of, ok := apply.ParseSource(text); ok && of.UID == source.UID && of.Generation >= source.Generation {
			source, spec = of, s[text]
		}
	}
	return spec
}

// version is an object as it once was.
type version struct {
	component harness.Component
	event     watch.EventType
	object    metav1.Object
}

// recorder keeps every version of the MCPServers of a namespace and of those of their children that tell their
// generation by content, in the order of the resourceVersions of each kind.
type recorder struct {
	mu       sync.Mutex
	versions []version
	observed map[string]int64
	ended    []string
}

// record watches the namespace until the test ends. Nothing of what is watched may exist yet.
func record(t *testing.T, ns *harness.Namespace) *recorder {
	t.Helper()
	r := &recorder{observed: map[string]int64{}}
	core, apps := ns.Core.CoreV1(), ns.Core.AppsV1()
	for component, begin := range map[harness.Component]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		harness.ServerItself: ns.Servers.Watch,
		harness.RunConfig:    core.ConfigMaps(ns.Name).Watch,
		harness.Backend:      apps.StatefulSets(ns.Name).Watch,
		harness.Proxy:        apps.Deployments(ns.Name).Watch,
	} {
		list, err := ns.Objects(component).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		harness.Follow(t, list.GetResourceVersion(), begin, func(event watch.Event) { r.take(component, event) })
	}
	return r
}

func (r *recorder) take(component harness.Component, event watch.Event) {
	object, ok := event.Object.(metav1.Object)
	if ok && component == harness.RunConfig && !strings.HasSuffix(harness.FormOf(component).Base(object.GetName()), harness.FormOf(component).Suffix) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		r.ended = append(r.ended, fmt.Sprintf("the watch of the %s has told %+v", component, event.Object))
		return
	}
	r.versions = append(r.versions, version{component, event.Type, object})
	if server, ok := object.(*v1beta1.MCPServer); ok {
		r.observed[server.Name] = server.Status.ObservedGeneration
	}
}

// look returns what was seen so far.
func (r *recorder) look() (versions []version, observed map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.versions), maps.Clone(r.observed)
}

// shown is how many mistakes of a history are shown.
const shown = 20

// check fails the test unless the versions are as staleness allows, and returns how many there are.
func (r *recorder) check(t *testing.T, known specs) int {
	t.Helper()
	versions, _ := r.look()
	r.mu.Lock()
	wrong := slices.Clone(r.ended)
	r.mu.Unlock()
	wrong = append(wrong, regressions(versions, known)...)
	for i, why := range wrong {
		if i == shown {
			t.Errorf("... and %d more", len(wrong)-shown)
			break
		}
		t.Error(why)
	}
	return len(versions)
}

// regressions tells where an older generation followed a newer one of the same MCPServer on the same object, and where
// the content is not that of the generation which the object tells.
func regressions(versions []version, known specs) []string {
	type track struct {
		uid types.UID
		key string
	}
	last := map[track]apply.Source{}
	// owed are the workloads whose replicas the operator has yet to release: it writes the source first. It keeps them if a later
	// generation names the same number before that.
	owed := map[types.UID]func(){}
	var wrong []string
	for _, v := range versions {
		tell := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("%s of %s at resourceVersion %s: %s", v.component, v.object.GetName(),
				v.object.GetResourceVersion(), fmt.Sprintf(format, args...)))
		}
		follow := func(key string, now apply.Source) {
			before, ok := last[track{v.object.GetUID(), key}]
			if ok && before.UID == now.UID && now.Generation < before.Generation {
				tell("%s goes from generation %d down to %d", key, before.Generation, now.Generation)
			}
			last[track{v.object.GetUID(), key}] = now
		}
		if server, ok := v.object.(*v1beta1.MCPServer); ok {
			follow("observedGeneration", apply.Source{UID: server.UID, Generation: server.Status.ObservedGeneration})
			continue
		}
		for _, key := range []string{v1beta1.AnnotationSource, v1beta1.AnnotationReplicasSource} {
			text, found := v.object.GetAnnotations()[key]
			_, before := last[track{v.object.GetUID(), key}]
			source, ok := apply.ParseSource(text)
			spec, exists := known[text]
			switch {
			case !found && key == v1beta1.AnnotationReplicasSource && !before:
				if ownsReplicas(v) {
					tell("the replicas are owned and do not tell from which generation")
				}
				continue
			case !ok || !exists:
				tell("%s is %q, which is no generation that there was", key, text)
				continue
			}
			follow(key, source)
			why := deviations(v, spec)
			if key == v1beta1.AnnotationReplicasSource {
				why = replicasDifference(v, spec)
				delete(owed, v.object.GetUID())
			}
			if why == replicasOwned {
				owed[v.object.GetUID()] = func() {
					if replicasDifference(v, known.last(source)) != "" {
						tell("%s is %s, but %s, and stay so", key, text, why)
					}
				}
			} else if why != "" {
				tell("%s is %s, but %s", key, text, why)
			}
		}
	}
	for _, tell := range owed {
		tell()
	}
	return wrong
}

// replicasOwned tells of replicas that are owned, where the spec names none.
const replicasOwned = "the replicas are owned, where the spec names none"

// deviations tells what of an object's content is not that of the spec, but for the replicas.
func deviations(v version, spec v1beta1.MCPServerSpec) string {
	variable := spec.Env[0]
	switch object := v.object.(type) {
	case *corev1.ConfigMap:
		text := object.Data["runconfig.json"]
		if !strings.Contains(text, fmt.Sprintf("%q: %q", "image", spec.Image)) ||
			!strings.Contains(text, fmt.Sprintf("%q: %q", variable.Name, variable.Value)) {
			return fmt.Sprintf("image %s and variable %s are not in %s", spec.Image, variable.Value, text)
		}
	case *appsv1.StatefulSet:
		container := object.Spec.Template.Spec.Containers[0]
		if container.Image != spec.Image || len(container.Env) == 0 || container.Env[0].Value != variable.Value {
			return fmt.Sprintf("image and variables are %s and %v, not %s and %s", container.Image, container.Env,
				spec.Image, variable.Value)
		}
	case *appsv1.Deployment:
		if args := object.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, spec.Image) {
			return fmt.Sprintf("image %s is not in %v", spec.Image, args)
		}
	}
	return ""
}

// replicasDifference tells why a workload's number of replicas is not that of the spec.
func replicasDifference(v version, spec v1beta1.MCPServerSpec) string {
	var got, want *int32
	switch object := v.object.(type) {
	case *appsv1.StatefulSet:
		got, want = object.Spec.Replicas, spec.BackendReplicas
	case *appsv1.Deployment:
		got, want = object.Spec.Replicas, spec.Replicas
	default:
		return "it has no replicas"
	}
	switch {
	case want == nil && ownsReplicas(v):
		return replicasOwned
	case want != nil && (got == nil || *got != *want):
		return fmt.Sprintf("the replicas are not %d", *want)
	}
	return ""
}

// ownsReplicas tells whether the writer of a workload's replicas owns them.
func ownsReplicas(v version) bool {
	return slices.ContainsFunc(ownership.Owners(v.object, ".spec.replicas"), func(o ownership.Owner) bool {
		return o.Manager == harness.FormOf(v.component).Replicas && o.Manager != ""
	})
}
