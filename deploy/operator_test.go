// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
)

func TestPodIsRestricted(t *testing.T) {
	all := installed(t)
	if level := one(t, all.namespaces).Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Errorf("the namespace enforces the standard %q, want restricted", level)
	}
	spec := one(t, all.deployments).Spec.Template.Spec
	if spec.HostNetwork || spec.HostPID || spec.HostIPC {
		t.Error("the pod shares a namespace of the host")
	}
	for _, volume := range spec.Volumes {
		if volume.HostPath != nil {
			t.Errorf("volume %s is a path of the host", volume.Name)
		}
	}
	wantPod := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !reflect.DeepEqual(spec.SecurityContext, wantPod) {
		t.Errorf("pod security context: %v, want %v", spec.SecurityContext, wantPod)
	}
	wantContainer := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		RunAsNonRoot:             new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if !reflect.DeepEqual(container.SecurityContext, wantContainer) {
			t.Errorf("container %s: security context %v, want %v", container.Name, container.SecurityContext, wantContainer)
		}
		if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() ||
			container.Resources.Limits.Memory().IsZero() {
			t.Errorf("container %s: resources %v, want requests and a limit on memory", container.Name, container.Resources)
		}
	}
}

func TestImagesArePinned(t *testing.T) {
	container := one(t, one(t, installed(t).deployments).Spec.Template.Spec.Containers)
	images := []string{container.Image, environment(container, "TOOLHIVE_RUNNER_IMAGE")}
	for _, server := range samples(t) {
		images = append(images, server.Spec.Image)
	}
	for _, image := range images {
		if !pinned(image) {
			t.Errorf("image %q names no version", image)
		}
	}
}

// TestOneRunnerIsMeant shows that the manifests, the operator without any setting and the documentation name the same release of
// ToolHive's proxyrunner. What renders otherwise is not what was tested.
func TestOneRunnerIsMeant(t *testing.T) {
	container := one(t, one(t, installed(t).deployments).Spec.Template.Spec.Containers)
	if got := environment(container, "TOOLHIVE_RUNNER_IMAGE"); got != render.DefaultRunnerImage {
		t.Errorf("install.yaml names %s, the operator by itself %s", got, render.DefaultRunnerImage)
	}
	_, version, _ := strings.Cut(render.DefaultRunnerImage, ":")
	for file, sentence := range map[string]string{
		"compatibility.md":     "The manifests name the proxyrunner of " + version + ",",
		"migration-details.md": "The manifests name that of " + version + " ",
	} {
		text, err := os.ReadFile(filepath.Join("..", "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), sentence) {
			t.Errorf("docs/%s does not say %q", file, sentence)
		}
	}
}

// TestOperatorIsThatOfInstall shows that what the plugin assumes where it finds no operator is what install.yaml sets.
func TestOperatorIsThatOfInstall(t *testing.T) {
	source := strict[appsv1.Deployment](t, []byte(Operator))
	want, got := one(t, one(t, installed(t).deployments).Spec.Template.Spec.Containers), one(t, source.Spec.Template.Spec.Containers)
	got.Image = want.Image
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the operator's container (-install.yaml +operator/deployment):\n%s", diff)
	}
}

// latest is an image reference that names no version, or what is given to a setting or field of an image.
var latest = regexp.MustCompile(`[\w./-]+:latest\b`)

// TestNothingNamesLatest looks through manifests, documentation, scripts and code: an image is named by its version, as what
// "latest" is tomorrow was not tested.
func TestNothingNamesLatest(t *testing.T) {
	looked := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != ".." && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), "_") || strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if !slices.Contains([]string{".go", ".md", ".yaml", ".sh", ".tmpl"}, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		looked++
		for _, found := range latest.FindAllString(string(text), -1) {
			t.Errorf("%s names %s", path, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 500 {
		t.Errorf("only %d files were found", looked)
	}
}

func TestAnImageIsPinnedByAVersionOrADigest(t *testing.T) {
	for image, want := range map[string]bool{
		"example.com/a/b:v1.2.3":                            true,
		"example.com/a/b@sha256:" + strings.Repeat("a", 64): true,
		"example.com:5000/a/b:v1":                           true,
		"example.com:5000/a/b":                              false,
		"example.com/a/b":                                   false,
		"example.com/a/b:latest":                            false,
		"":                                                  false,
		"example.com/a/b:latest@sha256:" + strings.Repeat("a", 9): true,
	} {
		if got := pinned(image); got != want {
			t.Errorf("pinned(%q) = %t, want %t", image, got, want)
		}
	}
}

// TestEverythingSelectsThePods shows that what is meant for the operator's pods finds them.
func TestEverythingSelectsThePods(t *testing.T) {
	all := installed(t)
	deployment := one(t, all.deployments)
	pod := deployment.Spec.Template
	budget := one(t, all.disruptionBudgets)
	policy := one(t, all.networkPolicies)
	service := one(t, all.services)
	selectors := map[string]*metav1.LabelSelector{
		"Deployment":          deployment.Spec.Selector,
		"PodDisruptionBudget": budget.Spec.Selector,
		"NetworkPolicy":       &policy.Spec.PodSelector,
		"Service":             {MatchLabels: service.Spec.Selector},
	}
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		selectors["spread over "+constraint.TopologyKey] = constraint.LabelSelector
	}
	for name, selector := range selectors {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		if s.Empty() || !s.Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects %q, the pods have %v", name, s, pod.Labels)
		}
	}
	for name, namespace := range map[string]string{
		"PodDisruptionBudget": budget.Namespace, "NetworkPolicy": policy.Namespace, "Service": service.Namespace,
	} {
		if namespace != deployment.Namespace {
			t.Errorf("%s is in %s, the Deployment in %s", name, namespace, deployment.Namespace)
		}
	}
}

// TestOnePodMayGo shows that the disruption budget protects, and yet never blocks a drain.
func TestOnePodMayGo(t *testing.T) {
	all := installed(t)
	replicas := *one(t, all.deployments).Spec.Replicas
	budget := one(t, all.disruptionBudgets).Spec
	if budget.MinAvailable != nil || budget.MaxUnavailable == nil {
		t.Fatalf("the budget is %v, want maxUnavailable, which leaves room at any number of replicas", budget)
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(budget.MaxUnavailable, int(replicas), false)
	if err != nil {
		t.Fatal(err)
	}
	if unavailable < 1 || unavailable >= int(replicas) {
		t.Errorf("of %d replicas %d may go, want at least one to go and one to stay", replicas, unavailable)
	}
}

func TestPortsAreReachable(t *testing.T) {
	all := installed(t)
	container := one(t, one(t, all.deployments).Spec.Template.Spec.Containers)
	names := map[string]int32{}
	for _, port := range container.Ports {
		names[port.Name] = port.ContainerPort
	}
	for path, probe := range map[string]*corev1.Probe{"/livez": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "health" {
			t.Errorf("the probe of %s is %v, want one on port health", path, probe)
		}
	}
	if got := one(t, one(t, all.services).Spec.Ports).TargetPort.StrVal; got != "metrics" {
		t.Errorf("the Service leads to port %q, want metrics", got)
	}
	for flag, port := range map[string]string{
		"--metrics-bind-address=:8080": "metrics", "--health-probe-bind-address=:8081": "health",
	} {
		if !slices.Contains(container.Args, flag) || !strings.HasSuffix(flag, ":"+strconv.Itoa(int(names[port]))) {
			t.Errorf("arguments %q do not bind port %s (%d)", container.Args, port, names[port])
		}
	}
	open := map[string]bool{}
	for _, rule := range one(t, all.networkPolicies).Spec.Ingress {
		for _, port := range rule.Ports {
			open[port.Port.StrVal] = len(rule.From) == 0
		}
	}
	if want := map[string]bool{"health": true, "metrics": false}; !reflect.DeepEqual(open, want) {
		t.Errorf("ports open to everybody: %v, want %v", open, want)
	}
}

// TestSamplesCoverTheTransports also shows that a sample names only fields that exist.
func TestSamplesCoverTheTransports(t *testing.T) {
	var transports []string
	for file, server := range samples(t) {
		transports = append(transports, string(server.Spec.Transport))
		if server.APIVersion != v1beta1.SchemeGroupVersion.String() || server.Kind != "MCPServer" {
			t.Errorf("%s is a %s of %s", file, server.Kind, server.APIVersion)
		}
		if server.Name == "" || server.Namespace != "" {
			t.Errorf("%s is %q in namespace %q, want a name and no namespace", file, server.Name, server.Namespace)
		}
	}
	files, err := filepath.Glob("samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(files) - 1; len(transports) != n { // kustomization.yaml is one of them.
		t.Errorf("Samples holds %d samples, the directory %d", len(transports), n)
	}
	slices.Sort(transports)
	if want := []string{"sse", "stdio", "streamable-http"}; !slices.Equal(transports, want) {
		t.Errorf("transports %v, want %v", transports, want)
	}
}

// samples returns the MCPServers of samples/, by file.
func samples(t *testing.T) map[string]v1beta1.MCPServer {
	t.Helper()
	servers := map[string]v1beta1.MCPServer{}
	err := fs.WalkDir(Samples, "samples", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(Samples, path)
		if err != nil {
			return err
		}
		servers[path] = strict[v1beta1.MCPServer](t, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(servers) == 0 {
		t.Fatal("there are no samples")
	}
	return servers
}

// pinned tells whether an image reference names a digest, or a tag other than latest.
func pinned(image string) bool {
	if strings.Contains(image, "@") {
		return true
	}
	_, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return ok && tag != "" && tag != "latest"
}

// environment returns the value of a variable, or nothing.
func environment(container corev1.Container, name string) string {
	for _, variable := range container.Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

func watchedNamespaces(deployment appsv1.Deployment) []string {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if value := environment(container, "WATCH_NAMESPACE"); value != "" {
			namespaces := strings.Split(value, ",")
			slices.Sort(namespaces)
			return namespaces
		}
	}
	return nil
}
