// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Updates says how the pods of a backend are replaced when their template has changed.
type Updates struct {
	// Driven is set when Freehold replaces them, one at a time and through the eviction API, instead of Kubernetes.
	Driven bool
	// Paused is set when none is to be replaced for now. It has no effect unless they are driven.
	Paused bool
}

// UpdatesOf returns what the annotations of an MCPServer ask for. Values that Render refuses ask for nothing.
func UpdatesOf(server *v1beta1.MCPServer) Updates {
	return Updates{
		Driven: server.Annotations[v1beta1.AnnotationBackendUpdateStrategy] == string(appsv1.OnDeleteStatefulSetStrategyType),
		Paused: server.Annotations[v1beta1.AnnotationBackendRollout] == v1beta1.BackendRolloutPaused,
	}
}

// updateStrategy completes the intent for the backend. Unless the user asks for OnDelete the strategy is left to other
// field managers.
func (r *renderer) updateStrategy(spec *appsv1ac.StatefulSetSpecApplyConfiguration) (unset []string) {
	switch value, given := r.server.Annotations[v1beta1.AnnotationBackendUpdateStrategy]; {
	case given && value == string(appsv1.OnDeleteStatefulSetStrategyType):
		spec.WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().WithType(appsv1.OnDeleteStatefulSetStrategyType))
		unset = []string{RollingUpdatePath}
	case given && value != string(appsv1.RollingUpdateStatefulSetStrategyType):
		r.invalidSpec(v1beta1.ReasonInvalidAnnotation, "The annotation %s is %s; it can be %s or %s, which is the default.",
			v1beta1.AnnotationBackendUpdateStrategy, quote(value), appsv1.OnDeleteStatefulSetStrategyType, appsv1.RollingUpdateStatefulSetStrategyType)
	}
	switch value, given := r.server.Annotations[v1beta1.AnnotationBackendRollout]; {
	case given && value != v1beta1.BackendRolloutPaused:
		r.invalidSpec(v1beta1.ReasonInvalidAnnotation, "The annotation %s is %s; it can be %s, or be left out.",
			v1beta1.AnnotationBackendRollout, quote(value), v1beta1.BackendRolloutPaused)
	case given && unset == nil:
		r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonNotPaused, "The annotation %s pauses nothing unless %s is %s.",
			v1beta1.AnnotationBackendRollout, v1beta1.AnnotationBackendUpdateStrategy, appsv1.OnDeleteStatefulSetStrategyType)
	}
	return unset
}

// RollingUpdatePath has the settings that go with the strategy RollingUpdate. The API server fills them in, and refuses
// OnDelete as long as they are there.
const RollingUpdatePath = ".spec.updateStrategy.rollingUpdate"
