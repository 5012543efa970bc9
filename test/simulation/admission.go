// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// alteration is what a mutating admission policy does to each object that is written.
type alteration struct {
	name string
	// alter changes an object. It leaves alone what the policy has changed before.
	alter func(obj runtime.Object)
}

// triples is the alteration of a number that Freehold may release.
const triples = "triples replicas"

// alterations change, remove or add to fields that Freehold owns. Each ends with the policy: what a policy adds beside them stays, by
// right, as no field manager owns it.
var alterations = []alteration{
	{"pins images", onTemplate(func(pods *corev1.PodSpec) {
		for i := range pods.Containers {
			if image := &pods.Containers[i].Image; !strings.Contains(*image, "@") {
				*image += "@sha256:" + strings.Repeat("0", 64)
			}
		}
	})},
	{"changes arguments", onTemplate(func(pods *corev1.PodSpec) {
		if args := &pods.Containers[0].Args; len(*args) > 0 && !slices.Contains(*args, "--altered") {
			*args = append(*args, "--altered")
		}
	})},
	{"removes variables", onTemplate(func(pods *corev1.PodSpec) { pods.Containers[0].Env = nil })},
	{"changes accounts", onTemplate(func(pods *corev1.PodSpec) {
		if pods.ServiceAccountName != "" {
			pods.ServiceAccountName, pods.DeprecatedServiceAccount = "default", "default"
		}
	})},
	{"lets Services select nothing", func(obj runtime.Object) {
		if service, ok := obj.(*corev1.Service); ok {
			service.Spec.Selector = map[string]string{"app": "nobody"}
		}
	}},
	{"reduces rules", func(obj runtime.Object) {
		if role, ok := obj.(*rbacv1.Role); ok && len(role.Rules) > 0 {
			role.Rules = role.Rules[:1]
		}
	}},
	{triples, func(obj runtime.Object) {
		// Where Freehold does not own the number, three stay when the policy is gone.
		if number := replicasOf(obj); number != nil && slices.ContainsFunc(ownership.Owners(access(obj), numberOfReplicas.String()), isOurOwner) {
			*number = 3
		}
	}},
	{"removes a label", func(obj runtime.Object) { removeLabel(obj, v1beta1.LabelToolHiveName) }},
	{"removes the label that selects children", func(obj runtime.Object) { removeLabel(obj, v1beta1.LabelToolHive) }},
	{"removes owners", func(obj runtime.Object) { access(obj).SetOwnerReferences(nil) }},
	{"changes the source", func(obj runtime.Object) {
		if access(obj).GetAnnotations()[v1beta1.AnnotationSource] != "" {
			access(obj).SetAnnotations(withLabel(access(obj).GetAnnotations(), v1beta1.AnnotationSource, "altered"))
		}
	}},
}

func onTemplate(alter func(pods *corev1.PodSpec)) func(obj runtime.Object) {
	return func(obj runtime.Object) {
		if template := templateOf(obj); template != nil {
			alter(&template.Spec)
		}
	}
}

func isOurOwner(owner ownership.Owner) bool { return isFreeholds(owner.Manager) }

func removeLabel(obj runtime.Object, key string) {
	labels := maps.Clone(access(obj).GetLabels())
	delete(labels, key)
	access(obj).SetLabels(labels)
}

// policy is an alteration in force.
type policy struct {
	alteration
	// until is the step after which it is gone; 0 for one that stays until the cluster has come to rest.
	until int
	// rests is for how long the cluster is at rest, with the policy, before it goes.
	rests time.Duration
	// request is the one that it concerned last, and changed are the fields that it has changed in that.
	request *apiserver.Request
	changed *fieldpath.Set
}

// isChild reports whether a kind is one of the children that operators write.
func isChild(k *apiserver.Kind) bool {
	return k.Group != toolhive && k.Kind != "Pod" && k.Kind != "ReplicaSet"
}

// concerns reports whether a policy matches a request.
func (p *policy) concerns(r *apiserver.Request) bool {
	return p != nil && r.Subresource == "" && isChild(r.Kind)
}

// admit lets the policy change an object before it is stored. Afterwards it sets defaults again.
func (p *policy) admit(s *Simulation, r *apiserver.Request, obj runtime.Object) {
	before := obj.DeepCopyObject()
	p.alter(obj)
	r.Kind.Strategy.Default(obj)
	p.request, p.changed = r, changes(s, r.Kind, before, obj)
}

// changedBy returns the fields of a request that admission has changed.
func (p *policy) changedBy(r *apiserver.Request) *fieldpath.Set {
	if p == nil || p.request != r {
		return &fieldpath.Set{}
	}
	return p.changed
}

// changes returns the fields that an object no longer has as it had them before.
func changes(s *Simulation, k *apiserver.Kind, before, after runtime.Object) *fieldpath.Set {
	from, err := k.Fields.ObjectToTyped(before)
	if err != nil {
		s.t.Fatal(err)
	}
	to, err := k.Fields.ObjectToTyped(after)
	if err != nil {
		s.t.Fatal(err)
	}
	comparison, err := from.Compare(to)
	if err != nil {
		s.t.Fatal(err)
	}
	return comparison.Modified.Union(comparison.Removed)
}

// Alter puts a policy in force, until the cluster has been at rest with it for so long.
func (s *Simulation) Alter(a alteration, rests time.Duration) {
	s.policy = &policy{alteration: a, rests: rests}
	s.note("a policy " + a.name)
}

// lift ends the policy.
func (s *Simulation) lift() {
	s.note("the policy that " + s.policy.name + " is gone")
	s.policy, s.lifted = nil, time.Now()
}
