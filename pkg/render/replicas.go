// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/workload"
)

// ReplicasPath is the path of a workload's number of replicas, which a separate writer sets, and scalers do.
const ReplicasPath = ".spec.replicas"

// IsReplicas reports whether a path is ReplicasPath.
func IsReplicas(path fieldpath.Path) bool { return path.String() == ReplicasPath }

// Scale says what to do about a workload's number of replicas.
type Scale struct {
	// Config is the intent of the writer of replicas.
	Config runtime.ApplyConfiguration
	// Capped is set when there are more pods than the one that there may be: the number is taken from any other field manager.
	Capped bool
	// Most is how many there may be where there are more.
	Most int32
	// Released is set when the spec names no number: one that was written before stays, without an owner.
	Released bool
}

// Scale decides about the number of replicas of a workload: as the spec says; or, where it says nothing, not at all. Where there
// may be one pod at most, the number is held there, and at none if the spec asks for none. live is the number that the workload
// has, and ours is set when the writer owns it.
func (r *Result) Scale(writer string, kind schema.GroupKind, name, namespace string, live int32, ours bool) Scale {
	number := func(replicas *int32) runtime.ApplyConfiguration { return Replicas(kind, name, namespace, replicas) }
	wanted, most := WantedReplicas(r.Intents, writer), int32(1)
	if wanted != nil {
		most = *ReplicasOf(wanted)
	}
	switch {
	case r.SinglePod && live > 1:
		return Scale{Config: number(&most), Capped: true, Most: most}
	case wanted != nil:
		return Scale{Config: wanted}
	case r.SinglePod && ours:
		return Scale{Config: number(&live)}
	default:
		return Scale{Config: number(nil), Released: true}
	}
}

// WantedReplicas returns the intent of a writer of replicas; nil when the spec names no number.
func WantedReplicas(intents []Intent, writer string) runtime.ApplyConfiguration {
	i := slices.IndexFunc(intents, func(i Intent) bool { return i.Writer == writer })
	if i < 0 {
		return nil
	}
	return intents[i].Config
}

// StartAtZero gives the intent for a workload its number of pods, if that is 0, until the writer of the number has written it: otherwise a
// pod would run for a moment.
func (r *Result) StartAtZero(intent *Intent) {
	if number := ReplicasOf(WantedReplicas(r.Intents, intent.Child.Replicas)); number == nil || *number != 0 {
		return
	}
	switch config := intent.Config.(type) {
	case *appsv1ac.StatefulSetApplyConfiguration:
		config.Spec.WithReplicas(0)
	case *appsv1ac.DeploymentApplyConfiguration:
		config.Spec.WithReplicas(0)
	}
}

// ReplicasOf returns the number of replicas of a workload, or of the intent for one; nil for none.
func ReplicasOf(of any) *int32 {
	switch of := of.(type) {
	case *appsv1ac.StatefulSetApplyConfiguration:
		if of.Spec != nil {
			return of.Spec.Replicas
		}
	case *appsv1ac.DeploymentApplyConfiguration:
		if of.Spec != nil {
			return of.Spec.Replicas
		}
	case *appsv1.StatefulSet:
		return of.Spec.Replicas
	case *workload.StatefulSet:
		return of.Replicas
	case *appsv1.Deployment:
		return of.Spec.Replicas
	case *workload.Deployment:
		return of.Replicas
	}
	return nil
}

// Replicas returns the intent of a workload's number of replicas; nil names none.
func Replicas(kind schema.GroupKind, name, namespace string, replicas *int32) runtime.ApplyConfiguration {
	if kind == kindStatefulSet {
		config := appsv1ac.StatefulSet(name, namespace)
		if replicas != nil {
			config.WithSpec(appsv1ac.StatefulSetSpec().WithReplicas(*replicas))
		}
		return config
	}
	config := appsv1ac.Deployment(name, namespace)
	if replicas != nil {
		config.WithSpec(appsv1ac.DeploymentSpec().WithReplicas(*replicas))
	}
	return config
}
