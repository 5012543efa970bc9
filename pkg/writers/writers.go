// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writers defines how each of Freehold's field managers writes objects of its kind: with which client, which fields it
// owns, which it keeps as they are, and how it records its source. The operator connects them with a cluster; the plugin plans
// with them, see apply.Plan.
package writers

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Key identifies a writer.
type Key struct {
	// Manager is the field manager.
	Manager string
	Kind    schema.GroupKind
}

// Set is writers of several managers.
type Set map[Key]apply.Writer

// Planners returns the writers of all managers, to plan with. They have no cluster to write to.
func Planners() (Set, error) {
	c, err := Connect(managers.Registry(), kubernetes.New(nil), versioned.New(nil), clock.RealClock{})
	return c.Writers, err
}

// records are the annotations of the writers that write nothing else.
var records = map[string]string{
	managers.Requests: v1beta1.AnnotationTakeRecord, managers.Takeover: v1beta1.AnnotationTakeoverProgress,
}

// add adds the writers of all managers of a kind that write through a subresource; "" is the object itself.
func add[L metav1.Object, A apply.Configuration[A]](
	s Set, registry *fieldmanager.Registry, kind schema.GroupKind, subresource string, target apply.Target[L, A],
) error {
	var errs []error
	for _, manager := range registry.Writers() {
		if manager.Kind != kind || manager.Subresource != subresource || manager.Name == managers.Ownership {
			continue
		}
		of := target
		if managers.CountsReplicas(manager.Name) {
			// One number has no template to settle, and changes with other generations than the rest.
			of.Keep, of.Source, of.References = nil, v1beta1.AnnotationReplicasSource, ""
			of.Recorded = apply.Recorded{Annotation: v1beta1.AnnotationReplicasWritten, Path: fieldmanager.Path("spec", "replicas"), Value: render.ReplicasOf}
		}
		if record := records[manager.Name]; record != "" {
			of.OwnershipMarker = fieldmanager.Path("metadata", "annotations", record)
			of.HasMarker = func(live L) bool { return live.GetAnnotations()[record] != "" }
		}
		w, err := apply.NewWriter(registry, manager, of)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s[Key{manager.Name, kind}] = w
	}
	return errors.Join(errs...)
}

// complete returns an error for each registered manager that has no writer.
func (s Set) complete(registry *fieldmanager.Registry) error {
	var errs []error
	for _, manager := range registry.Writers() {
		if _, ok := s[Key{manager.Name, manager.Kind}]; !ok && manager.Name != managers.Ownership {
			errs = append(errs, fmt.Errorf("field manager %q has no client for %s", manager.Name, manager.Kind))
		}
	}
	return errors.Join(errs...)
}
