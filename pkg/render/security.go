// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// unprivilegedID is the user and group that both tiers run as, unless the platform chooses.
const unprivilegedID = 1000

// podSecurity fills in what the user's pod security context leaves open; nil stands for an empty one.
func (r *renderer) podSecurity(user *corev1ac.PodSecurityContextApplyConfiguration) *corev1ac.PodSecurityContextApplyConfiguration {
	if user == nil {
		user = corev1ac.PodSecurityContext()
	}
	setDefault(&user.RunAsNonRoot, true)
	if user.SeccompProfile == nil {
		user.WithSeccompProfile(runtimeDefault())
	}
	if r.opts.OpenShift {
		user.RunAsUser, user.RunAsGroup, user.FSGroup = nil, nil, nil
		return user
	}
	setDefault(&user.RunAsUser, unprivilegedID)
	setDefault(&user.RunAsGroup, unprivilegedID)
	setDefault(&user.FSGroup, unprivilegedID)
	return user
}

// containerSecurity fills in what the user's container security context leaves open; nil stands for an
// empty one.
func (r *renderer) containerSecurity(user *corev1ac.SecurityContextApplyConfiguration) *corev1ac.SecurityContextApplyConfiguration {
	if user == nil {
		user = corev1ac.SecurityContext()
	}
	setDefault(&user.Privileged, false)
	setDefault(&user.RunAsNonRoot, true)
	setDefault(&user.ReadOnlyRootFilesystem, true)
	if !needsEscalation(user) {
		setDefault(&user.AllowPrivilegeEscalation, false)
	}
	if user.Capabilities == nil {
		user.WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
	}
	if user.SeccompProfile == nil {
		user.WithSeccompProfile(runtimeDefault())
	}
	if r.opts.OpenShift {
		user.RunAsUser, user.RunAsGroup = nil, nil
		return user
	}
	setDefault(&user.RunAsUser, unprivilegedID)
	setDefault(&user.RunAsGroup, unprivilegedID)
	return user
}

// needsEscalation reports whether the API server would refuse allowPrivilegeEscalation false.
func needsEscalation(c *corev1ac.SecurityContextApplyConfiguration) bool {
	if *c.Privileged {
		return true
	}
	return c.Capabilities != nil && slices.ContainsFunc(c.Capabilities.Add, func(capability corev1.Capability) bool {
		return capability == "CAP_SYS_ADMIN"
	})
}

func runtimeDefault() *corev1ac.SeccompProfileApplyConfiguration {
	return corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
