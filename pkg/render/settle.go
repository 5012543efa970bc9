// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// SettleBackend keeps values on the backend's pod template that carry no behaviour as they are, so that they
// never restart a pod by themselves: the generation gate, where it is closed to every proxyrunner, and the
// label with the proxy's port. Want is changed in place, and only where its pod template differs from the
// one we own in nothing else; with any other difference the pods are restarted anyhow.
//
// Owned is what our writer owns on the live object; nil, or without a pod template, where that is nothing.
func SettleBackend(want, owned *appsv1ac.StatefulSetApplyConfiguration) {
	if want == nil || owned == nil || want.Spec == nil || owned.Spec == nil {
		return
	}
	live, wanted := owned.Spec.Template, want.Spec.Template
	gate, hasGate := annotation(live, v1beta1.AnnotationGeneration)
	if generation, err := strconv.ParseInt(gate, 10, 64); !hasGate || err != nil || generation <= runconfig.Generation {
		return
	}
	port, hasPort := label(live, labelPort)
	if !hasPort {
		return
	}
	rest := &rideAlong{
		annotations: []string{v1beta1.AnnotationGeneration},
		labels:      []string{labelPort},
	}
	if !rest.equalButFor(wanted, live) {
		return
	}
	wanted.WithAnnotations(map[string]string{v1beta1.AnnotationGeneration: gate}).
		WithLabels(map[string]string{labelPort: port})
}

// SettleProxy keeps the mark of an earlier restart on the proxy's pod template once it is not asked for any
// more, until the template changes for another cause: to take the mark away would be a restart as well.
// Want is changed in place. Owned is what our writer owns on the live object; nil, or without a pod template,
// where that is nothing.
func SettleProxy(want, owned *appsv1ac.DeploymentApplyConfiguration) {
	if want == nil || owned == nil || want.Spec == nil || owned.Spec == nil {
		return
	}
	live, wanted := owned.Spec.Template, want.Spec.Template
	restarted, was := annotation(live, v1beta1.AnnotationRestartedAt)
	if _, asked := annotation(wanted, v1beta1.AnnotationRestartedAt); asked || !was {
		return
	}
	rest := &rideAlong{annotations: []string{v1beta1.AnnotationRestartedAt}}
	if !rest.equalButFor(wanted, live) {
		return
	}
	wanted.WithAnnotations(map[string]string{v1beta1.AnnotationRestartedAt: restarted})
}

// rideAlong are the keys of a pod template's metadata that do not count as a difference.
type rideAlong struct {
	annotations, labels []string
}

// equalButFor tells whether two pod templates differ in nothing that counts. They are compared as the API
// server stores them: ToolHive's runner owns structs in which nothing is set, such as resources: {}, and to
// the API server these are the same as none.
func (k *rideAlong) equalButFor(a, b *corev1ac.PodTemplateSpecApplyConfiguration) bool {
	storedA, okA := k.stored(a)
	storedB, okB := k.stored(b)
	return okA && okB && equality.Semantic.DeepEqual(storedA, storedB)
}

// stored is a template as the API server stores it, without the keys; not ok when there is none.
func (k *rideAlong) stored(t *corev1ac.PodTemplateSpecApplyConfiguration) (stored *corev1.PodTemplateSpec, ok bool) {
	if t == nil {
		return nil, false
	}
	data, err := json.Marshal(t)
	if err != nil {
		return nil, false
	}
	stored = &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(data, stored); err != nil {
		return nil, false
	}
	for _, key := range k.annotations {
		delete(stored.Annotations, key)
	}
	for _, key := range k.labels {
		delete(stored.Labels, key)
	}
	return stored, true
}

func annotation(t *corev1ac.PodTemplateSpecApplyConfiguration, key string) (string, bool) {
	if t == nil || t.ObjectMetaApplyConfiguration == nil {
		return "", false
	}
	value, ok := t.Annotations[key]
	return value, ok
}

func label(t *corev1ac.PodTemplateSpecApplyConfiguration, key string) (string, bool) {
	if t == nil || t.ObjectMetaApplyConfiguration == nil {
		return "", false
	}
	value, ok := t.Labels[key]
	return value, ok
}
