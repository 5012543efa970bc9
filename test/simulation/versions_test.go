// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// An object is served in the version in which a client asks for it, and its owners are recorded with the version in which they wrote.
func TestAnObjectIsServedInEachVersion(t *testing.T) {
	Run(t, *seed, func(s *Simulation) {
		client, err := dynamic.NewForConfig(s.Server.Connect("client", nil, false))
		if err != nil {
			t.Fatal(err)
		}
		in := func(version schema.GroupVersion) dynamic.ResourceInterface {
			return client.Resource(version.WithResource("mcpservers")).Namespace(s.Namespace)
		}
		older, newer := in(v1alpha1.SchemeGroupVersion), in(v1beta1.SchemeGroupVersion)
		watch, err := older.Watch(s.t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		sent := server("web", nil)
		sent.SetAPIVersion(v1alpha1.SchemeGroupVersion.String())
		made, err := older.Create(s.t.Context(), sent, metav1.CreateOptions{FieldManager: "creator"})
		if err != nil {
			t.Fatal(err)
		}
		applied := server("web", fields{"image": "example.com/web:1"})
		if _, err := newer.Apply(s.t.Context(), "web", applied, metav1.ApplyOptions{FieldManager: "applier"}); err != nil {
			t.Fatal(err)
		}
		found, err := newer.Get(s.t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := older.List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := (<-watch.ResultChan()).Object.GetObjectKind().GroupVersionKind().Version
		watch.Stop()
		for of, version := range map[string][2]string{
			"what was made": {made.GroupVersionKind().Version, "v1alpha1"}, "what was found": {found.GroupVersionKind().Version, "v1beta1"},
			"an item": {list.Items[0].GroupVersionKind().Version, "v1alpha1"}, "the list": {list.GroupVersionKind().Version, "v1alpha1"},
			"an event": {seen, "v1alpha1"},
		} {
			if version[0] != version[1] {
				t.Errorf("%s is in version %s instead of %s", of, version[0], version[1])
			}
		}
		recorded := map[string]string{}
		for _, entry := range found.GetManagedFields() {
			recorded[entry.Manager] = entry.APIVersion
		}
		if recorded["creator"] != v1alpha1.SchemeGroupVersion.String() || recorded["applier"] != v1beta1.SchemeGroupVersion.String() {
			t.Errorf("the owners are recorded as %v", recorded)
		}
	})
}
