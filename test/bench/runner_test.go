// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
	"github.com/freehold-dev/freehold/test/harness"
)

// restore returns a recorded object.
func restore[T any](t *testing.T, documents map[harness.Component]string, component harness.Component) *T {
	t.Helper()
	text := strings.NewReplacer("${NAME}", "server", "${NAMESPACE}", "ns", "${BACKEND_UID}", "of-the-backend").Replace(documents[component])
	object := new(T)
	if err := yaml.Unmarshal([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// leaves returns the values of an object by their paths. It leaves out those that the API server does not keep, and what it keeps of who
// owns what.
func leaves(t *testing.T, object any) map[string]string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			for key, value := range node {
				walk(path+"."+key, value)
			}
		case []any:
			for i, value := range node {
				walk(fmt.Sprintf("%s[%d]", path, i), value)
			}
		default:
			dropped := node == "" || node == false && (strings.HasSuffix(path, ".stdin") || strings.HasSuffix(path, ".tty"))
			if !dropped && !strings.HasPrefix(path, ".metadata.managedFields") && !strings.HasPrefix(path, ".status") {
				found[path] = fmt.Sprint(node)
			}
		}
	}
	walk("", root)
	return found
}

// ofOthers are the fields of recorded objects that no proxyrunner has written: defaults of the API server, and the owner that ToolHive's
// operator adds to a StatefulSet.
var ofOthers = []string{
	".spec.persistentVolumeClaimRetentionPolicy.", ".spec.podManagementPolicy", ".spec.replicas", ".spec.revisionHistoryLimit",
	".spec.updateStrategy.", ".spec.internalTrafficPolicy", ".spec.template.spec.containers[0].imagePullPolicy",
	".spec.template.spec.containers[0].terminationMessage", ".spec.template.spec.dnsPolicy", ".spec.template.spec.schedulerName",
	".spec.template.spec.serviceAccount", ".spec.template.spec.terminationGracePeriodSeconds", ".spec.ipFamil", ".spec.clusterIPs",
	".metadata.creationTimestamp",
}

// compare tells where what is played differs from what was recorded.
func compare(t *testing.T, what string, played, recorded any) {
	t.Helper()
	want, got := leaves(t, recorded), leaves(t, played)
	for path := range want {
		_, ours := got[path]
		isTheirs := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
		adopted := what == "StatefulSet" && strings.HasPrefix(path, ".metadata.ownerReferences")
		if !ours && (adopted || slices.ContainsFunc(ofOthers, isTheirs) || want[path] == "None" && strings.HasSuffix(path, "sessionAffinity")) {
			delete(want, path)
		}
	}
	for _, path := range []string{".apiVersion", ".kind", ".metadata.namespace"} {
		delete(want, path)
		delete(got, path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-recorded +played):\n%s", what, diff)
	}
}

// What ToolHive's proxyrunners applied on a real node is what is played for the same proxy.
func TestPlayedProxyrunnersApplyWhatRealOnesDo(t *testing.T) {
	for _, fixture := range []string{"plain", "newer", "edited-stdio"} {
		t.Run(fixture, func(t *testing.T) {
			documents := harness.ReadFixture(t, fixture)
			template := restore[appsv1.Deployment](t, documents, harness.Proxy).Spec.Template
			document := restore[corev1.ConfigMap](t, documents, harness.RunConfig).Data[runconfig.Key]
			b, err := readBackend(&template.ObjectMeta, &template.Spec, document)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "StatefulSet", b.statefulSet("ns"), restore[appsv1.StatefulSet](t, documents, harness.Backend))
			services := b.services("ns", "of-the-backend")
			recorded := []harness.Component{harness.HeadlessService, harness.BackendService}
			if documents[recorded[0]] == "" {
				recorded = nil
			}
			if len(services) != len(recorded) {
				t.Fatalf("%d Services are played, %d were recorded", len(services), len(recorded))
			}
			for i, component := range recorded {
				compare(t, string(component), services[i], restore[corev1.Service](t, documents, component))
			}
		})
	}
}

// proxy is the pod of a recorded proxy, with its RunConfig.
func proxy(t *testing.T, generation string) (*corev1.Pod, *corev1.ConfigMap) {
	t.Helper()
	documents := harness.ReadFixture(t, "plain")
	template := restore[appsv1.Deployment](t, documents, harness.Proxy).Spec.Template
	config := restore[corev1.ConfigMap](t, documents, harness.RunConfig)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name, config.Namespace = "ns", "server-1", "ns"
	pod.Annotations[v1beta1.AnnotationGeneration] = generation
	return pod, config
}

func TestAPlayedProxyrunnerLeavesWhatIsNewer(t *testing.T) {
	for _, step := range []struct{ pod, live, want string }{
		{pod: "2", want: "2"}, {"2", "1", "2"}, {"2", "2", "2"}, {"2", "3", "3"},
	} {
		pod, config := proxy(t, step.pod)
		r := &runners{core: fake.NewClientset(config)}
		sets := r.core.AppsV1().StatefulSets("ns")
		if step.live != "" {
			live := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "server"}}
			live.Spec.Template.Annotations = map[string]string{v1beta1.AnnotationGeneration: step.live}
			if _, err := sets.Create(t.Context(), live, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.play(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		set, err := sets.Get(t.Context(), "server", metav1.GetOptions{})
		if err != nil || set.Spec.Template.Annotations[v1beta1.AnnotationGeneration] != step.want {
			t.Errorf("%+v: it has %v, %v", step, set.Spec.Template.Annotations, err)
		}
		services, err := r.core.CoreV1().Services("ns").List(t.Context(), metav1.ListOptions{})
		if want := 2; err != nil || step.want == step.pod && len(services.Items) != want || step.want != step.pod && len(services.Items) > 0 {
			t.Errorf("%+v: there are %d Services, %v", step, len(services.Items), err)
		}
	}
}

func TestWithoutARunConfigNothingIsPlayed(t *testing.T) {
	pod, config := proxy(t, "1")
	if err := (&runners{core: fake.NewClientset()}).play(t.Context(), pod); err == nil {
		t.Error("no error without a ConfigMap")
	}
	pod.Spec.Volumes = nil
	if err := (&runners{core: fake.NewClientset(config)}).play(t.Context(), pod); err == nil {
		t.Error("no error without a volume")
	}
}

func TestProxyrunnersArePlayedWhereTheOperatorNeedsThem(t *testing.T) {
	for _, c := range []struct {
		args   []string
		played bool
	}{
		{nil, false},
		{[]string{"-toolhive-release=v0.63.0"}, true},
		{[]string{"-toolhive-release=v0.47.0"}, true},
		{[]string{"-toolhive-release=v0.63.0", "-toolhive=false"}, false},
	} {
		s, err := parse(c.args, io.Discard)
		if err != nil || s.played() != c.played {
			t.Errorf("%v: %t, %v", c.args, s.played(), err)
		}
	}
	if _, err := parse([]string{"-toolhive-release=v0.1.0"}, io.Discard); err == nil {
		t.Error("a release that cannot be built is taken")
	}
}
