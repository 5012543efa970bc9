// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// noteContainers reports that podTemplateSpec has containers of which none is the MCP server's: one may be meant to be it.
func (r *renderer) noteContainers(pod *corev1ac.PodSpecApplyConfiguration) {
	var names []string
	for i := range pod.Containers {
		names = append(names, quote(*pod.Containers[i].Name))
	}
	if len(names) > 0 && backendContainerOf(pod) == nil {
		r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonNoServerContainer,
			"%s.spec.containers has %s and none called %s, so they run beside the MCP server and set nothing of it. If one is meant to be the "+
				"MCP server, call it %[3]s. If not, add {\"name\":\"%[3]s\"} after them, which changes no pod.",
			podTemplatePath, strings.Join(names, ", "), workload.BackendContainer)
	}
}

// noteTiers reports what the spec gives to the proxy alone and ToolHive's documentation calls the MCP server's.
func (r *renderer) noteTiers(backend *corev1ac.PodSpecApplyConfiguration) {
	server, missing := backendContainerOf(backend), corev1ac.Container().WithName(workload.BackendContainer)
	pod, fields := corev1ac.PodSpec(), []string(nil)
	if r.resources != nil && server.Resources == nil && backend.Resources == nil {
		fields, missing.Resources = append(fields, "spec.resources"), r.resources
	}
	for i := range r.server.Spec.Volumes {
		v := &r.server.Spec.Volumes[i]
		if !slices.ContainsFunc(server.VolumeMounts, func(m corev1ac.VolumeMountApplyConfiguration) bool {
			return *m.Name == v.Name || path.Clean(*m.MountPath) == path.Clean(v.MountPath)
		}) {
			volume, mount := hostVolume(v)
			fields = append(fields, indexed("spec.volumes", i))
			missing.WithVolumeMounts(mount)
			pod.WithVolumes(volume)
		}
	}
	if len(fields) > 0 {
		template, _ := json.Marshal(map[string]any{"spec": pod.WithContainers(missing)}) // Strings and quantities alone: it cannot fail.
		r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonProxyOnly,
			"The proxy alone has %s, as in ToolHive; the MCP server's container has nothing like it. To give it to that container too, add to %s: %s",
			strings.Join(fields, ", "), podTemplatePath, template)
	}
}

// notePullSecrets reports pull secrets that one tier has and the other may need. A pod with a list of its own does not get that of its
// ServiceAccount.
func (r *renderer) notePullSecrets(backend []corev1ac.LocalObjectReferenceApplyConfiguration) {
	const list, proxys = podTemplatePath + ".spec.imagePullSecrets", "spec.resourceOverrides.proxyDeployment.imagePullSecrets"
	var missing []string
	if d := r.proxyOverrides(); d != nil {
		for _, s := range d.ImagePullSecrets {
			has := func(b corev1ac.LocalObjectReferenceApplyConfiguration) bool { return *b.Name == s.Name }
			if s.Name != "" && !slices.ContainsFunc(backend, has) {
				missing = append(missing, quote(s.Name))
			}
		}
	}
	told := func(format string, args ...any) {
		r.notice(v1beta1.ConditionSpecValid, v1beta1.ReasonPullSecretsOfOneTier, format, args...)
	}
	registry, _, _ := strings.Cut(r.runnerImage(), "/")
	switch names := strings.Join(missing, ", "); {
	case len(missing) > 0 && len(backend) > 0:
		told("The MCP server's pods have the pull secrets of %s alone, and not %s of %s. Add to the former what their images need.", list, names, proxys)
	case len(missing) > 0 && r.server.Spec.ServiceAccount != nil:
		told("The MCP server's pods have the pull secrets of their ServiceAccount, which is not Freehold's, and not %s of %s. "+
			"Add what their images need to that ServiceAccount and to %s.", names, proxys, list)
	case len(backend) > 0 && len(r.imagePullSecrets()) == 0 && strings.HasPrefix(r.server.Spec.Image, registry+"/") &&
		!strings.HasPrefix(r.runnerImage(), "ghcr.io/stacklok/"): // ToolHive's images are public.
		told("The proxy's pods have none of the pull secrets of %s, and their image %s is of the same registry. Add to %s what it needs.",
			list, quote(r.runnerImage()), proxys)
	}
}
