// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	"slices"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// Side is whose a field manager is.
type Side string

const (
	// Freehold is one of the operator's writers.
	Freehold Side = "freehold"
	// User is a human, or something that a human has set up: kubectl, an autoscaler, a GitOps tool, another operator.
	User Side = "user"
	// System is Kubernetes itself.
	System Side = "system"
)

// components of Kubernetes whose names the classes of package managers, which are those of the operator's children, do not
// tell.
var components = []string{"kubelet", "cloud-controller-manager", "apiserver", "coredns", "k3s", "k0s"}

// SideOf returns whose a manager is.
func SideOf(owner ownership.Owner) Side {
	switch managers.ClassOf(owner.Manager, owner.Subresource) {
	case managers.ClassFreehold:
		return Freehold
	case managers.ClassKubernetes:
		return System
	}
	if slices.Contains(components, owner.Manager) {
		return System
	}
	return User
}
