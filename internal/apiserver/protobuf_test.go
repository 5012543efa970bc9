// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A client that wants protobuf reads, writes and watches what another one does.
func TestAClientOfProtobufGetsTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		asProtobuf := f.inProtobuf().CoreV1().ConfigMaps("shop")
		w := must(asProtobuf.Watch(t.Context(), metav1.ListOptions{}))(t)
		defer w.Stop()
		created := must(asProtobuf.Create(t.Context(), configMap("a", "1"), metav1.CreateOptions{}))(t)
		expectEvents(t, w, "created", "ADDED a=1@"+created.ResourceVersion)
		changed := f.edit("a", func(c *corev1.ConfigMap) { c.Data["key"] = "2" })
		expectEvents(t, w, "changed", "MODIFIED a=2@"+changed.ResourceVersion)
		list, same := must(asProtobuf.List(t.Context(), metav1.ListOptions{}))(t), must(f.configMaps.List(t.Context(), metav1.ListOptions{}))(t)
		if diff := cmp.Diff(same, list); diff != "" {
			t.Errorf("lists (-JSON +protobuf):\n%s", diff)
		}
		other := types.UID("another")
		expectCode(t, asProtobuf.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}), 409, "another UID")
		if err := asProtobuf.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &created.UID}}); err != nil {
			t.Error(err)
		}
		_, err := asProtobuf.Get(t.Context(), "a", metav1.GetOptions{})
		expectCode(t, err, 404, "it is gone")
		f.Watches()[0].Expire()
		expectEvents(t, w, "deleted and expired", "DELETED a=2@1003", "ERROR 410", "end")
	})
}
