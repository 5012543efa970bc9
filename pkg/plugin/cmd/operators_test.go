// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/render"
)

// deployments is an API server with these Deployments of operators in the namespace freehold-system, by their names, each with its
// arguments, and with nothing else.
type deployments map[string][]string

// RoundTrip implements http.RoundTripper.
func (d deployments) RoundTrip(request *http.Request) (*http.Response, error) {
	notFound := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Details: &metav1.StatusDetails{Name: path.Base(request.URL.Path)},
	}
	var answer any = metav1.List{TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"}}
	code := http.StatusOK
	resource, _ := strings.CutPrefix(request.URL.Path, "/apis/apps/v1/")
	name, one := strings.CutPrefix(resource, "namespaces/freehold-system/deployments/")
	switch {
	case resource == "deployments":
		list := appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{Kind: "DeploymentList", APIVersion: "apps/v1"}}
		for name := range d {
			list.Items = append(list.Items, d.deployment(name))
		}
		answer = list
	case one && d[name] != nil:
		answer = d.deployment(name)
	case one, strings.HasPrefix(request.URL.Path, "/apis/admissionregistration.k8s.io/"):
		code, answer = http.StatusNotFound, notFound
	}
	body, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

func (d deployments) deployment(name string) appsv1.Deployment {
	found := appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "freehold-system", Name: name}}
	found.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "freehold", Image: "example.com/freehold:v1", Args: append(slices.Clone(d[name]), "--openshift=false", "--runner-image="+name),
	}}
	return found
}

// shards are two operators that share the MCPServers of a cluster.
var shards = deployments{
	"freehold":   {"--mcpserver-selector=shard notin (a)", "--leader-elect-resource-name=freehold"},
	"freehold-a": {"--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold-a", "--configs=freehold"},
}

// surveyorOf returns a planner of an API server, after the plugin was called with arguments.
func surveyorOf(t *testing.T, server http.RoundTripper, args ...string) (s *planner, out, errOut *bytes.Buffer) {
	t.Helper()
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	env := environment(out, errOut)
	env.WrapConfig = func(config *rest.Config) *rest.Config {
		config.Transport = server
		return config
	}
	p, root := build(env)
	s = &planner{plugin: p}
	cmd, _, err := root.Find([]string{"conflicts"})
	if err != nil {
		t.Fatal(err)
	}
	cmd.ResetFlags()
	s.addFlags(cmd)
	if err := cmd.ParseFlags(append(args, "--kubeconfig="+os.DevNull, "--server=http://apiserver.invalid")); err != nil {
		t.Fatal(err)
	}
	if err := s.connect(); err != nil {
		t.Fatal(err)
	}
	return s, out, errOut
}

func serverWith(labels map[string]string) *v1beta1.MCPServer {
	return &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: labels}}
}

// The settings of the operator that looks after an MCPServer count, and the plugin says so where it is another one than it was to ask.
func TestTheSettingsOfAnMCPServersOperatorCount(t *testing.T) {
	inA := map[string]string{"shard": "a"}
	alone := deployments{"freehold": {"--mcpserver-selector=shard=b"}}
	elsewhere := deployments{"mcp": {}}
	const assumed = "what deploy/install.yaml sets is assumed, such as the proxyrunner " + render.DefaultRunnerImage
	for name, test := range map[string]struct {
		deployments deployments
		args        []string
		labels      map[string]string
		want, says  string
	}{
		"one operator":                {deployments{"freehold": {}}, nil, inA, "freehold", ""},
		"the usual one of several":    {shards, nil, nil, "freehold", ""},
		"another one of several":      {shards, nil, inA, "freehold-a", "freehold-system/freehold-a"},
		"the one that is named":       {shards, []string{"--operator=freehold-system/freehold-a"}, inA, "freehold-a", ""},
		"one that is named, and not":  {shards, []string{"--operator=freehold-system/freehold"}, inA, "freehold", `freehold-system/freehold looks after the MCPServers with "shard notin (a)"`},
		"an argument that is given":   {shards, []string{"--operator-arg=--runner-image=mine"}, inA, "mine", "freehold-system/freehold-a"},
		"none":                        {alone, nil, inA, "freehold", "no operator was found that looks after MCPServer web in namespace shop"},
		"one of another name":         {elsewhere, nil, inA, "mcp", "the settings of the operator freehold-system/mcp count for all MCPServers"},
		"its name, and an argument":   {elsewhere, []string{"--operator-arg=--openshift=false"}, inA, "mcp", "freehold-system/mcp"},
		"shards of other names":       {deployments{"mcp": shards["freehold"], "mcp-a": shards["freehold-a"]}, nil, inA, "mcp-a", "freehold-system/mcp-a"},
		"two that may be meant":       {deployments{"mcp": {}, "mcp-a": {}}, nil, inA, render.DefaultRunnerImage, assumed},
		"one that is named, and gone": {elsewhere, []string{"--operator=freehold-system/gone"}, inA, render.DefaultRunnerImage, assumed},
		"nowhere":                     {deployments{}, nil, inA, render.DefaultRunnerImage, assumed},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, errOut := surveyorOf(t, test.deployments, test.args...)
			for range 2 {
				settings, err := s.settingsFor(serverWith(test.labels))
				if err != nil || settings.RunnerImage != test.want {
					t.Errorf("settings of %s, want %s; error %v", settings.RunnerImage, test.want, err)
				}
			}
			if !strings.Contains(errOut.String(), test.says) || test.says == "" && errOut.Len() > 0 || strings.Count(errOut.String(), "\n") > 1 {
				t.Errorf("it says %q, want %q once", errOut, test.says)
			}
		})
	}
}

func TestOneOfSeveralOperatorsKeepsConfigs(t *testing.T) {
	for name, test := range map[string]struct {
		deployments deployments
		args        []string
		want        bool
	}{
		"one operator":             {deployments{"freehold": {}}, nil, true},
		"one of another name":      {deployments{"mcp": {}}, nil, true},
		"it leaves them":           {deployments{"mcp": {"--configs=toolhive"}}, nil, false},
		"nowhere":                  {deployments{}, nil, true},
		"shards of other names":    {deployments{"mcp": shards["freehold"], "mcp-a": shards["freehold-a"]}, nil, true},
		"a shard of another name":  {deployments{"mcp": shards["freehold"]}, nil, false},
		"one that leaves them":     {deployments{"freehold": {"--configs=toolhive"}}, nil, false},
		"another one of several":   {shards, nil, true},
		"one that is named":        {shards, []string{"--operator=freehold-system/freehold"}, false},
		"none of several":          {deployments{"freehold": {"--mcpserver-selector=shard=a"}, "b": {"--mcpserver-selector=shard=b"}}, nil, false},
		"one of another namespace": {deployments{"freehold": {"--mcpserver-selector=shard=a"}, "b": {"--watch-namespaces=other"}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := surveyorOf(t, test.deployments, test.args...)
			if got, err := s.keepsConfigs("shop"); got != test.want || err != nil {
				t.Errorf("it is %v, error %v", got, err)
			}
		})
	}
}

// An operator is in the way of a handback if it looks after one of the MCPServers, or after what they refer to.
func TestAnOperatorOfTheMCPServersIsInTheWayOfAHandback(t *testing.T) {
	rest := serverWith(nil)
	config := &unstructured.Unstructured{}
	config.SetNamespace("shop")
	onlyA := deployments{"freehold-a": {"--mcpserver-selector=shard=a"}}
	keeper := deployments{"freehold-a": shards["freehold-a"]}
	for name, test := range map[string]struct {
		deployments deployments
		labels      map[string]string
		configs     []*unstructured.Unstructured
		want        bool
	}{
		"its operator":                         {shards, nil, nil, true},
		"the operator of others":               {onlyA, nil, nil, false},
		"its operator alone":                   {onlyA, map[string]string{"shard": "a"}, nil, true},
		"the operator of others, and a config": {onlyA, nil, []*unstructured.Unstructured{config}, false},
		"the operator of configs":              {keeper, nil, []*unstructured.Unstructured{config}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, out, _ := surveyorOf(t, test.deployments)
			rest.Labels = test.labels
			stopped, err := (&handbackOptions{planner: *s}).stopped(cluster.Freehold, []*v1beta1.MCPServer{rest}, test.configs)
			if err != nil || stopped == test.want {
				t.Errorf("it may begin: %v, error %v\n%s", stopped, err, out)
			}
		})
	}
}

// leaving is an API server on which the operator of shard a was scaled to 0: its Deployment is not listed any more, and its last pod is on
// its way out.
type leaving struct{ deployments }

// RoundTrip implements http.RoundTripper.
func (l leaving) RoundTrip(request *http.Request) (*http.Response, error) {
	var answer any
	switch request.URL.Path {
	case "/apis/apps/v1/deployments":
		list := appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{Kind: "DeploymentList", APIVersion: "apps/v1"}}
		for name := range l.deployments {
			d := l.deployment(name)
			if name == "freehold-a" {
				d.Spec.Replicas = new(int32(0))
			}
			list.Items = append(list.Items, d)
		}
		answer = list
	case "/api/v1/pods":
		at := metav1.Now()
		answer = corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "freehold-system", Name: "freehold-a-6f9d-x", DeletionTimestamp: &at,
				Labels:          map[string]string{"app.kubernetes.io/name": "freehold", "pod-template-hash": "6f9d"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "freehold-a-6f9d", UID: "u", Controller: new(true)}},
			},
			Spec: l.deployment("freehold-a").Spec.Template.Spec,
		}}}
	default:
		return l.deployments.RoundTrip(request)
	}
	body, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

// An operator that is on its way out is in the way of a handback, also where the operators of other MCPServers run beside it.
func TestHandbackWaitsForTheLastPod(t *testing.T) {
	onlyA := serverWith(map[string]string{"shard": "a"})
	s, out, _ := surveyorOf(t, leaving{shards})
	stopped, err := (&handbackOptions{planner: *s}).stopped(cluster.Freehold, []*v1beta1.MCPServer{onlyA}, nil)
	if err != nil || stopped || !strings.Contains(out.String(), "pod/freehold-a-6f9d-x") || !strings.Contains(out.String(), "on its way out") {
		t.Errorf("it may begin: %v, error %v\n%s", stopped, err, out)
	}
	if strings.Contains(out.String(), "deployment.apps/") {
		t.Errorf("it names operators of other MCPServers:\n%s", out)
	}
}

// besideToolHive is an API server with ToolHive's operator, of whose policies the user may read none.
type besideToolHive struct{ deployments }

// RoundTrip implements http.RoundTripper.
func (b besideToolHive) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasPrefix(request.URL.Path, "/apis/admissionregistration.k8s.io/") {
		return refusing{}.RoundTrip(request)
	}
	return b.deployments.RoundTrip(request)
}

// Whether a policy keeps ToolHive's operator from MCPServers is not known without the right to read it: a preview says so, and takes the
// operator neither for an obstacle nor for none.
func TestAPreviewSaysThatItMayNotReadPolicies(t *testing.T) {
	thv := deployments{"thv": {"/thv-operator"}}
	for name, test := range map[string]struct {
		server             http.RoundTripper
		operators, unknown int
	}{
		"no right":  {besideToolHive{thv}, 0, 1},
		"no policy": {thv, 1, 0},
	} {
		s, _, _ := surveyorOf(t, test.server)
		operators, unknown, err := s.writing([]*v1beta1.MCPServer{serverWith(nil)})
		if err != nil || len(operators) != test.operators || len(unknown) != test.unknown {
			t.Errorf("%s: it finds %v, does not know %q, error %v", name, operators, unknown, err)
		}
	}
}
