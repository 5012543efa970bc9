// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/clock"
)

// Client is the part of a generated typed client, for one namespace, that writes. L is the object's type, A that of its
// apply configuration.
type Client[L, A any] interface {
	// Apply sends a configuration.
	Apply(ctx context.Context, config A, options metav1.ApplyOptions) (L, error)
	// Patch sends an edit of managedFields.
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (L, error)
}

// NewTarget returns the target that a generated client writes to: client returns it for a namespace, such as the method
// ConfigMaps of a clientset's CoreV1. Extract is the generated ExtractX function of the kind, schema what the generated
// NewTypeConverter makes of a scheme that has the kind, and editor the field manager under which managedFields are edited;
// it is to be the same for all writers of an object, and owns nothing.
//
// The clock of the edits is the real one, and there is neither a source nor a mark: set Target.Source, so that writes from
// an older view are held back and a lost claim is found again. For a subresource, set Target.Apply and Target.Extract to
// what the client and the kind have for that.
func NewTarget[C Client[L, A], L metav1.Object, A Configuration[A]](
	client func(namespace string) C, extract func(live L, manager string) (A, error), schema managedfields.TypeConverter, editor string,
) Target[L, A] {
	return Target[L, A]{
		Apply: func(ctx context.Context, namespace string, config A, options metav1.ApplyOptions) (L, error) {
			return client(namespace).Apply(ctx, config, options)
		},
		Extract: extract, Schema: schema,
		Edits: Edits[L]{
			Manager: editor, Clock: clock.RealClock{},
			Send: func(ctx context.Context, namespace, name string, patch []byte, options metav1.PatchOptions) (L, error) {
				return client(namespace).Patch(ctx, name, types.JSONPatchType, patch, options)
			},
		},
	}
}
