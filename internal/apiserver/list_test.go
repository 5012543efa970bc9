// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// names are those of the items of a list, with a mark where it continues.
func names(list *corev1.ConfigMapList) (all []string) {
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
	}
	if list.Continue != "" {
		all = append(all, "...")
	}
	return all
}

// What is created, changed or deleted between two pages is in neither, until the version is forgotten.
func TestAListContinuesInTheStateInWhichItBegan(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a", "b", "c"} {
		put(f, configMap(name, "1"))
	}
	page := must(f.configMaps.List(t.Context(), metav1.ListOptions{Limit: 2}))(t)
	if diff := cmp.Diff([]string{"a", "b", "..."}, names(page)); diff != "" || *page.RemainingItemCount != 1 {
		t.Errorf("%v remain after the first page (-want +got):\n%s", page.RemainingItemCount, diff)
	}
	if err := f.configMaps.Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	put(f, configMap("d", "1"))
	rest := metav1.ListOptions{Limit: 2, Continue: page.Continue}
	second := must(f.configMaps.List(t.Context(), rest))(t)
	if diff := cmp.Diff([]string{"c"}, names(second)); diff != "" || second.ResourceVersion != page.ResourceVersion {
		t.Errorf("version %s after %s (-want +got):\n%s", second.ResourceVersion, page.ResourceVersion, diff)
	}
	f.Compact()
	_, err := f.configMaps.List(t.Context(), rest)
	expectCode(t, err, 410, "the version is forgotten")
}

// A read that must not be older than a version waits for it, but not for long.
func TestAReadWaitsForAVersionToCome(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		put(f, configMap("a", "1"))
		began := time.Now()
		_, err := f.configMaps.List(t.Context(), metav1.ListOptions{ResourceVersion: "9999"})
		expectCode(t, err, 504, "a version that does not come")
		if waited := time.Since(began); waited < freshWait || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			t.Errorf("after %v: %v", waited, err)
		}
		next := configMap("b", "1")
		next.Namespace = "shop"
		defer time.AfterFunc(time.Second, func() { f.Put(f.kindNamed("ConfigMap"), next) }).Stop()
		list := must(f.configMaps.List(t.Context(), metav1.ListOptions{ResourceVersion: "1002"}))(t)
		if diff := cmp.Diff([]string{"a", "b"}, names(list)); diff != "" {
			t.Errorf("once it came (-want +got):\n%s", diff)
		}
	})
}

func TestAWatchIsSilentUntilItsVersionComes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		put(f, configMap("a", "1"))
		w := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1002"}))(t)
		defer w.Stop()
		put(f, configMap("b", "1"))
		expectEvents(t, w, "the version that it is to begin after")
		third := put(f, configMap("c", "1"))
		expectEvents(t, w, "the next one", "ADDED c=1@"+third.ResourceVersion)

		listing := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{
			ResourceVersion: "9999", SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}))(t)
		defer listing.Stop()
		expectEvents(t, listing, "a list that must not be older", "ERROR 504", "end")
	})
}
