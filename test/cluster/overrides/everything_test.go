// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	_ "embed"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

//go:embed testdata/podtemplate-everything.yaml
var podTemplateEverything []byte

// TestPodTemplateEverything gives an MCPServer a pod template with about everything in it, changes something else, and
// takes the pod template away again.
func TestPodTemplateEverything(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	template, err := yaml.YAMLToJSONStrict(podTemplateEverything)
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, env)
	operator := s.Operate(t)
	everything := func(server *v1beta1.MCPServer) {
		server.Spec.Args = []string{"--port=9000"}
		harness.Environment("PLAIN", "2")(server)
		server.Spec.Secrets = []v1beta1.SecretRef{{Name: "s", Key: "token", TargetEnvName: "TOKEN"}}
		harness.PodTemplate(string(template))(server)
	}
	accepted := slices.Concat(harness.Fine[2:], []harness.Expectation{
		{Condition: v1beta1.ConditionPodTemplateValid, Status: metav1.ConditionTrue, Reason: "ValidPodTemplateSpec"},
		// The duplicates of PLAIN and TWICE are the other one.
		{
			Condition: v1beta1.ConditionSpecValid, Status: metav1.ConditionTrue, Reason: "FieldsIgnored",
			Message: []string{"spec.containers[1].image", "spec.serviceAccountName", "env[TWICE]", `"PLAIN" of the backend`},
		},
	})
	s.Create(t, harness.HTTPServer("plain"))
	s.AwaitStatus(t, "plain", harness.Fine...)
	s.Create(t, harness.Server("full", v1beta1.TransportSSE, everything, func(server *v1beta1.MCPServer) { server.Spec.MCPPort = 9000 }))
	s.AwaitStatus(t, "full", accepted...)
	s.AwaitRest(t)
	s.Quiet(t, s.Mark(t), harness.Rest)

	restarted := s.Mark(t)
	operator = s.ReplaceOperator(t, operator)
	s.AwaitRest(t)
	for _, e := range s.Writes(t, restarted) {
		t.Errorf("a restart costs a write: %v\n%s", e, s.difference(t, e))
	}

	// An edit of something else leaves all of it alone.
	before := s.statefulSet(t, "full")
	edited := s.Mark(t)
	s.Edit(t, "full", func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	s.AwaitStatus(t, "full", accepted...)
	s.AwaitRest(t)
	changed := s.statefulSet(t, "full")
	for i := range before.Spec.Template.Spec.Containers {
		if before.Spec.Template.Spec.Containers[i].Name == "mcp" {
			before.Spec.Template.Spec.Containers[i].Image = harness.OtherImage
		}
	}
	if diff := cmp.Diff(before.Spec, changed.Spec); diff != "" {
		t.Errorf("another image changes more than the image (-want +got):\n%s", diff)
	}
	count := harness.CountWrites("full", s.Writes(t, edited))
	count.Lost()
	if count["backend"] != 1 {
		t.Errorf("another image costs %v", count)
	}

	// It goes as it came: what is left is what an MCPServer has that never had any of it.
	s.Edit(t, "full", func(server *v1beta1.MCPServer) { server.Spec = harness.HTTPServer("").Spec })
	s.AwaitStatus(t, "full", harness.Fine...)
	s.AwaitSettled(t, "full")
	s.AwaitRest(t)
	want, got := s.statefulSet(t, "plain").Spec.Template, s.statefulSet(t, "full").Spec.Template
	if diff := cmp.Diff(want.Spec, got.Spec, cmp.Comparer(sameBut("full", "plain"))); diff != "" {
		t.Errorf("something of the pod template stays (-want +got):\n%s", diff)
	}
	if len(got.Labels) != len(want.Labels) || len(got.Annotations) != len(want.Annotations) {
		t.Errorf("keys stay: labels %v, annotations %v", got.Labels, got.Annotations)
	}
	again := s.Mark(t)
	s.ReplaceOperator(t, operator)
	s.AwaitRest(t)
	s.Quiet(t, again, harness.Rest)
}

func (s *stage) statefulSet(t *testing.T, name string) *appsv1.StatefulSet {
	t.Helper()
	found, err := s.Core.AppsV1().StatefulSets(s.Name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// sameBut compares texts, and takes the names that are made from two MCPServers' names for equal.
func sameBut(one, other string) func(a, b string) bool {
	neutral := func(text string) string {
		if text == one || text == one+"-sa" {
			return other + text[len(one):]
		}
		return text
	}
	return func(a, b string) bool { return neutral(a) == neutral(b) }
}
