// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// kept is what a cache keeps of the pod template that our writer owns.
type kept struct {
	// rest is the digest of the template without the values that ride along.
	rest digest
	// gate, restart and label ride along: they carry no behaviour, so they never restart a pod by themselves. Nil for none.
	gate, restart, label *string
	// bundles is the checksum of certificate authorities; nil for none.
	bundles *string
}

type digest [sha256.Size]byte

// annotationRolloutRestart is the mark of kubectl rollout restart. ToolHive's proxyrunner applies the one that it finds on the
// backend's pod template, from v0.45.0 on, and so owns it together with kubectl; a takeover inherits that.
const annotationRolloutRestart = "kubectl.kubernetes.io/restartedAt"

// What rides along in the two templates.
var (
	// The generation gate, where it is closed to every proxyrunner, the label with the proxy's port, and the mark of an earlier
	// restart: to take it away would be a restart as well.
	rideInBackend = rideAlong{
		gate: v1beta1.AnnotationGeneration, restart: annotationRolloutRestart, label: v1beta1.LabelToolHivePort,
	}
	// The mark of an earlier restart, once it is not asked for any more.
	rideInProxy = rideAlong{restart: v1beta1.AnnotationRestartedAt}
)

// KeepBackend returns what PreserveBackend needs of what our writer owns of a live StatefulSet; nil where that has no pod
// template.
func KeepBackend(owned *appsv1ac.StatefulSetApplyConfiguration) any {
	if owned == nil || owned.Spec == nil {
		return nil
	}
	return rideInBackend.keep(owned.Spec.Template)
}

// KeepProxy is KeepBackend for the proxy's Deployment and PreserveProxy.
func KeepProxy(owned *appsv1ac.DeploymentApplyConfiguration) any {
	if owned == nil || owned.Spec == nil {
		return nil
	}
	_, marked := annotation(owned.Spec.Template, v1beta1.AnnotationRestartedAt)
	checksum, summed := annotation(owned.Spec.Template, v1beta1.AnnotationCAChecksum)
	if !marked && !summed {
		return nil
	}
	found := rideInProxy.keep(owned.Spec.Template)
	if live, ok := found.(*kept); ok && summed {
		live.bundles = &checksum
	}
	return found
}

// Preserve returns a function that copies into the intent's configuration, or a copy of it, owned values whose difference
// is not worth a write: kept is the result of KeepBackend or KeepProxy. It is nil where there are none.
func (i *Intent) Preserve() func(config runtime.ApplyConfiguration, kept any) {
	switch i.Writer {
	case managers.Backend:
		return PreserveBackend
	case managers.Proxy:
		if i.bundlesUnknown {
			return preserveProxyAndBundles
		}
		return PreserveProxy
	}
	return nil
}

// PreserveBackend keeps the values that ride along on the backend's pod template as they are, so that they never restart a pod
// by themselves. The configuration of the StatefulSet is changed in place, and only where its pod template differs from the
// one we own in nothing else; with any other difference the pods are restarted anyhow.
func PreserveBackend(config runtime.ApplyConfiguration, owned any) {
	want, ok := config.(*appsv1ac.StatefulSetApplyConfiguration)
	live, known := owned.(*kept)
	if !ok || !known || want == nil || want.Spec == nil {
		return
	}
	if live.gate == nil || live.label == nil {
		return
	}
	if generation, err := strconv.ParseInt(*live.gate, 10, 64); err != nil || generation <= runconfig.Generation {
		return
	}
	if !rideInBackend.equal(want.Spec.Template, live) {
		return
	}
	want.Spec.Template.WithAnnotations(map[string]string{v1beta1.AnnotationGeneration: *live.gate}).
		WithLabels(map[string]string{v1beta1.LabelToolHivePort: *live.label})
	rideInBackend.keepRestart(want.Spec.Template, live)
}

// PreserveProxy is PreserveBackend for the proxy's Deployment.
func PreserveProxy(config runtime.ApplyConfiguration, owned any) {
	want, ok := config.(*appsv1ac.DeploymentApplyConfiguration)
	live, known := owned.(*kept)
	if !ok || !known || want == nil || want.Spec == nil {
		return
	}
	if rideInProxy.equal(want.Spec.Template, live) {
		rideInProxy.keepRestart(want.Spec.Template, live)
	}
}

// preserveProxyAndBundles is PreserveProxy where certificate authorities of the proxy are missing. Their checksum stays as it is, also
// where something else differs: pods of a template without it could not start either, and it would differ once more as soon as the
// certificate authorities are there.
func preserveProxyAndBundles(config runtime.ApplyConfiguration, owned any) {
	want, ok := config.(*appsv1ac.DeploymentApplyConfiguration)
	live, known := owned.(*kept)
	if ok && known && want != nil && want.Spec != nil && want.Spec.Template != nil && live.bundles != nil {
		want.Spec.Template.WithAnnotations(map[string]string{v1beta1.AnnotationCAChecksum: *live.bundles})
	}
	PreserveProxy(config, owned)
}

// rideAlong are the keys of a pod template's metadata that do not count as a difference: two annotations and a label; empty for
// none.
type rideAlong struct{ gate, restart, label string }

// keepRestart keeps the mark of an earlier restart where the template has none of its own.
func (k *rideAlong) keepRestart(t *corev1ac.PodTemplateSpecApplyConfiguration, live *kept) {
	if _, asked := annotation(t, k.restart); !asked && live.restart != nil {
		t.WithAnnotations(map[string]string{k.restart: *live.restart})
	}
}

func (k *rideAlong) keep(t *corev1ac.PodTemplateSpecApplyConfiguration) any {
	rest, ok := k.digest(t)
	if !ok {
		return nil
	}
	found := &kept{rest: rest}
	if value, ok := annotation(t, k.gate); ok {
		found.gate = &value
	}
	if value, ok := annotation(t, k.restart); ok {
		found.restart = &value
	}
	if value, ok := label(t, k.label); ok {
		found.label = &value
	}
	return found
}

func (k *rideAlong) equal(t *corev1ac.PodTemplateSpecApplyConfiguration, live *kept) bool {
	rest, ok := k.digest(t)
	return ok && rest == live.rest
}

// digest identifies a template, without the keys, as the API server stores it: ToolHive's runner owns structs in which nothing
// is set, such as resources: {}, and to the API server these are the same as none. It is not ok when there is none.
func (k *rideAlong) digest(t *corev1ac.PodTemplateSpecApplyConfiguration) (d digest, ok bool) {
	if t == nil {
		return d, false
	}
	data, err := json.Marshal(t)
	if err != nil {
		return d, false
	}
	stored := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(data, stored); err != nil {
		return d, false
	}
	delete(stored.Annotations, k.gate)
	delete(stored.Annotations, k.restart)
	delete(stored.Labels, k.label)
	if data, err = json.Marshal(stored); err != nil {
		return d, false
	}
	return sha256.Sum256(data), true
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
