// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

const (
	// mostArgs is how many arguments an MCPServer may have, and mostText how many bytes of them. docs/architecture.md has the bounds.
	mostArgs = 1024
	mostText = 128 << 10
)

// version is a generation of an MCPServer.
type version struct {
	server     types.UID
	generation int64
}

// isOversized reports whether the arguments of an MCPServer are too many, or too long.
func isOversized(server runtime.Object) bool {
	content, ok := server.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	args, _, _ := unstructured.NestedStringSlice(content.Object, "spec", "args")
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	return len(args) > mostArgs || size > mostText
}

// checkSize finds a child that is made from a generation of its MCPServer that is too large.
func (o *oracle) checkSize(r *apiserver.Request, obj runtime.Object) {
	if r.Kind.GroupKind() == managers.MCPServer && isOversized(obj) {
		o.tooLarge[version{access(obj).GetUID(), access(obj).GetGeneration()}] = true
	}
	if !isOurs(r) || r.Verb != "apply" || !isChild(r.Kind) {
		return
	}
	from, ok := apply.ParseSource(access(obj).GetAnnotations()[v1beta1.AnnotationSource])
	if ok && o.tooLarge[version{from.UID, from.Generation}] {
		o.violated(r, "it is made from generation %d, which is too large", from.Generation)
	}
}

// oversized names the MCPServers that are too large and whose status does not say so.
func (o *oracle) oversized() (violations []string) {
	for _, server := range o.servers() {
		if !o.tooLarge[version{server.UID, server.Generation}] || !isHeldByFreehold(server, "phase") || !isHeldByFreehold(server, `k:{"type":"SpecValid"}`) {
			continue
		}
		valid := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionSpecValid)
		if server.Status.Phase != v1beta1.PhaseFailed || valid == nil || valid.Status != metav1.ConditionFalse || valid.Reason != v1beta1.ReasonTooLarge {
			violations = append(violations, fmt.Sprintf("step %d: %s is too large, and its status says %s and %s", o.s.Steps, server.Name, server.Status.Phase, text(valid)))
		}
	}
	return violations
}
