// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
)

// backendReady tells whether a runner that starts now finds what it talks to. One that is attached to a process needs
// to be told which.
func (p *pass) backendReady(process string, attached bool) bool {
	return p.backendServes() && (!attached || process != "")
}

// backendServes tells whether a pod of the backend is ready.
func (p *pass) backendServes() bool {
	found := p.statefulSet()
	return found != nil && found.Status.ReadyReplicas > 0
}

// backendProcess returns what the runner of a proxy with transport stdio is to be attached to. While no process is
// ready it is the one that the proxy was made for: there is nothing better to attach to.
func (p *pass) backendProcess() string {
	for _, pod := range p.backendPods() {
		if process := render.ProcessOf(pod); process != "" && pod.Name == render.OnlyBackendPod(p.key.Name) {
			return process
		}
	}
	deployment := p.deployment()
	if deployment == nil {
		return ""
	}
	return deployment.Spec.Template.Annotations[v1beta1.AnnotationAttachedTo]
}
