// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
)

func server(change func(*v1beta1.MCPServer)) *v1beta1.MCPServer {
	s := &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "u", Generation: 3, ResourceVersion: "7", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "freehold.dev/c": "d", "e.example.com/f": strings.Repeat("x", 5000)}, Finalizers: []string{"f"},
		},
		Spec:   v1beta1.MCPServerSpec{Image: "i"},
		Status: v1beta1.MCPServerStatus{Phase: v1beta1.PhaseReady},
	}
	change(s)
	return s
}

func labels(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("label-", i)] = "x"
	}
	return all
}

// What may be large in an MCPServer is named, and what is not too large of the rest is kept.
func TestWhatIsTooLargeIsNamedAndNotKept(t *testing.T) {
	for want, test := range map[string]struct {
		change func(*v1beta1.MCPServer)
		// meta and status report whether these are kept.
		meta, status bool
	}{
		"spec.args has 350000 entries, and may have 1024": {func(s *v1beta1.MCPServer) { s.Spec.Args = slices.Repeat([]string{""}, 350000) }, true, true},
		"spec.env has 10000 entries, and may have 1024":   {func(s *v1beta1.MCPServer) { s.Spec.Env = make([]v1beta1.EnvVar, 10000) }, true, true},
		"spec is larger than 131072 bytes":                {func(s *v1beta1.MCPServer) { s.Spec.Image = strings.Repeat("x", bounds.DefaultSize) }, true, true},
		"spec.podTemplateSpec has 5001 values, and may have 4096": {func(s *v1beta1.MCPServer) {
			s.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[` + strings.Repeat("{},", 5000) + `{}]}}`)}
		}, true, true},
		"metadata.labels has 1025 entries, and may have 1024": {func(s *v1beta1.MCPServer) { s.Labels = labels(1025) }, false, true},
		"metadata is larger than 131072 bytes": {func(s *v1beta1.MCPServer) {
			s.Finalizers = []string{strings.Repeat("x", bounds.DefaultSize)}
		}, false, true},
		"status is larger than 131072 bytes": {func(s *v1beta1.MCPServer) {
			s.Status.Conditions = slices.Repeat([]metav1.Condition{{Message: strings.Repeat("x", 30000)}}, 5)
		}, true, false},
	} {
		t.Run(want, func(t *testing.T) {
			whole := server(test.change)
			got := bounds.Reduce(whole.DeepCopy(), bounds.DefaultSize)
			if problem := bounds.Problem(got); problem != want {
				t.Errorf("the problem is %q", problem)
			}
			expect := &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u", Generation: 3, ResourceVersion: "7"}}
			if test.meta {
				expect.ObjectMeta = whole.ObjectMeta
			}
			expect.Annotations = map[string]string{"": want, "freehold.dev/c": "d"}
			if test.status {
				expect.Status = whole.Status
			}
			if diff := cmp.Diff(expect, got); diff != "" {
				t.Errorf("what is kept (-want +got):\n%s", diff)
			}
			if again := bounds.Reduce(got, bounds.DefaultSize); again != got {
				t.Error("what is kept is reduced again")
			}
		})
	}
}

// What people write is kept whole, also where kubectl has noted the whole spec once more, and so are large texts with commas.
func TestWhatIsNotTooLargeIsKeptWhole(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.MCPServer){
		"as it is": func(*v1beta1.MCPServer) {},
		"a large note": func(s *v1beta1.MCPServer) {
			s.Annotations[corev1.LastAppliedConfigAnnotation] = strings.Repeat("x", 200<<10)
		},
		"a thousand arguments": func(s *v1beta1.MCPServer) { s.Spec.Args = slices.Repeat([]string{"--flag=of some length"}, 1024) },
		"a large policy": func(s *v1beta1.MCPServer) {
			s.Spec.Image = strings.Repeat("permit(principal, action, resource);", 3000)
		},
		"an ordinary template": func(s *v1beta1.MCPServer) {
			s.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(`{"spec":{"nodeSelector":{"a":"b"}}}`)}
		},
		"more than its defaults": func(s *v1beta1.MCPServer) { s.Labels = labels(1024) },
	} {
		t.Run(name, func(t *testing.T) {
			whole := server(change)
			if got := bounds.Reduce(whole, bounds.DefaultSize); got != whole || bounds.Problem(got) != "" || len(got.Annotations) != 1 {
				t.Errorf("it is refused: %s, %v", bounds.Problem(got), got.Annotations)
			}
		})
	}
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ca"}, Data: map[string]string{"ca.crt": strings.Repeat("x", 300<<10)}}
	if got := bounds.Reduce(data, bounds.DefaultSize); got.Name != "ca" || got.Data != nil || bounds.Problem(got) != "data is larger than 131072 bytes" {
		t.Errorf("of a ConfigMap is kept %v", got)
	}
}

// What kubectl apply sent and neither the CRD nor Freehold has is named, for each kind of object that has a spec.
func TestFieldsThatTheAPIServerDroppedAreNamed(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"spec":{"image":"i","oidcConfig":{"type":"inline"},"sessionStorage":{"later":true}}}`: `"spec.oidcConfig", "spec.sessionStorage.later"`,
		`{"spec":{"oidcConfigref":{"name":"idp"}}}`:                                             `"spec.oidcConfigref"`,
		`{"spec":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}}`:                                  `"spec.a", "spec.b", "spec.c", "spec.d", "spec.e" (+2 more)`,
		`{"spec":{"image":"i","proxyPort":8080,"podTemplateSpec":{"of":"any form"}}}`:           "",
		`{"spec":{"` + strings.Repeat("x", 200<<10) + `":1}}`:                                   `"spec.` + strings.Repeat("x", 125) + `..."`,
		`{"spec":{"newer":true}}`:                                                               "",
		`{"metadata":{"x":1},"status":{"y":2}}`:                                                 "",
		`{"spec":null}`:                                                                         "",
		`{"spec":[]}`:                                                                           "",
		`no JSON`:                                                                               "",
		strings.Repeat(`{"spec":`, 20000):                                                       "",
		`{"spec":{"image":"` + strings.Repeat("x", 200<<10) + `","z":1}}`:                       `"spec.z"`,
	} {
		s := server(func(s *v1beta1.MCPServer) {
			s.Annotations[corev1.LastAppliedConfigAnnotation] = manifest
			s.Spec.UnknownFields = []string{"newer"} // The CRD in the cluster has it.
		})
		once := bounds.Reduce(s, bounds.DefaultSize)
		if got, again := bounds.Dropped(once), bounds.Dropped(bounds.Reduce(once, bounds.DefaultSize)); got != want || again != want {
			t.Errorf("%.80s: dropped are %s, and then %s, want %s", manifest, got, again, want)
		}
	}
	noted := metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"type":"inline","inlined":{}},"data":{"a":"b"}}`}}
	if got := bounds.Dropped(bounds.Reduce(&v1beta1.MCPOIDCConfig{ObjectMeta: *noted.DeepCopy()}, 0)); got != `"spec.inlined"` {
		t.Errorf("of an MCPOIDCConfig were dropped: %s", got)
	}
	if got := bounds.Dropped(bounds.Reduce(&corev1.ConfigMap{ObjectMeta: *noted.DeepCopy()}, 0)); got != "" {
		t.Errorf("of a ConfigMap were dropped: %s", got)
	}
}

// Objects that are too large are written one at a time, and others do not wait for them.
func TestObjectsThatAreTooLargeAreWrittenOneAtATime(t *testing.T) {
	large := bounds.Reduce(server(func(s *v1beta1.MCPServer) { s.Labels = labels(1025) }), bounds.DefaultSize)
	turn := make(bounds.Turn, 1)
	first := turn.Take(large)
	turn.Take(server(func(*v1beta1.MCPServer) {}))()
	second := make(chan struct{})
	go func() {
		defer close(second)
		turn.Take(large)()
	}()
	select {
	case <-second:
		t.Error("two are written at a time")
	default:
	}
	first()
	<-second
}

func BenchmarkReduceOfAnOrdinaryMCPServer(b *testing.B) {
	s := server(func(s *v1beta1.MCPServer) {
		delete(s.Annotations, corev1.LastAppliedConfigAnnotation)
		s.Spec.Env = slices.Repeat([]v1beta1.EnvVar{{Name: "A", Value: "b"}}, 10)
		s.Spec.Args = slices.Repeat([]string{"--flag"}, 10)
	})
	for b.Loop() {
		bounds.Reduce(s, bounds.DefaultSize)
	}
}
