// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// fieldEdit is a change of one field and the writes that it causes.
type fieldEdit struct {
	name      string
	transport v1beta1.Transport // streamable-http when empty
	before    []harness.Change
	change    harness.Change
	// writes are those that the edit causes but for the status, which is written at most twice.
	writes harness.WriteCount
	// rolls are the workloads that get new pods.
	rolls []harness.Component
	// silent edits do not even write the status.
	silent bool
}

var both = []harness.Component{harness.Proxy, harness.Backend}

// fieldEdits lists the writes that edits cause. The RunConfig's checksum is part of the proxy's pod template, so whatever the proxy is to
// know restarts it: it reads its RunConfig once.
var fieldEdits = []fieldEdit{
	{
		name:   "image", // of the MCP server; it is the backend's, and in the RunConfig, and an argument of the proxy
		change: func(s *v1beta1.MCPServer) { s.Spec.Image = "example.com/mcp:2" },
		writes: harness.Once("runconfig", "backend", "proxy"), rolls: both,
	},
	{
		name:   "env", // is in the RunConfig as well
		change: harness.Environment("LEVEL", "debug"),
		writes: harness.Once("runconfig", "backend", "proxy"), rolls: both,
	},
	{
		name:   "args", // are in the RunConfig as well
		change: func(s *v1beta1.MCPServer) { s.Spec.Args = []string{"--verbose"} },
		writes: harness.Once("runconfig", "backend", "proxy"), rolls: both,
	},
	{
		// The port is in a label of the StatefulSet and of the backend's Services, and so in their objects; the
		// label of the backend's pods waits until something else changes them.
		name:   "proxy-port",
		change: func(s *v1beta1.MCPServer) { s.Spec.ProxyPort = 8888 },
		writes: harness.Once("runconfig", "backend", "proxy", "service/proxy", "service/backend", "service/headless"),
		rolls:  []harness.Component{harness.Proxy},
	},
	{
		name:   "mcp-port", // the backend has it in its environment, the proxy in its RunConfig
		change: func(s *v1beta1.MCPServer) { s.Spec.MCPPort = 9999 },
		writes: harness.Once("runconfig", "backend", "proxy", "service/backend", "service/headless"), rolls: both,
	},
	{
		name: "resources", // are the proxy's, as ToolHive has it
		change: func(s *v1beta1.MCPServer) {
			s.Spec.Resources.Limits = v1beta1.ResourceList{CPU: "500m", Memory: "64Mi"}
		},
		writes: harness.Once("proxy", "event"), rolls: []harness.Component{harness.Proxy}, // a warning: the MCP server has none
	},
	{
		name:   "pod-template",
		change: harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"memory":"128Mi"}}}]}}`),
		writes: harness.Once("backend"), rolls: []harness.Component{harness.Backend},
	},
	{
		name:   "session-affinity",
		change: func(s *v1beta1.MCPServer) { s.Spec.SessionAffinity = "None" },
		writes: harness.Once("service/proxy", "service/backend"),
	},
	{
		name:   "audit",
		change: func(s *v1beta1.MCPServer) { s.Spec.Audit = &v1beta1.AuditConfig{Enabled: true} },
		writes: harness.Once("runconfig", "proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name:   "replicas",
		before: []harness.Change{harness.Replicas(1, 1)}, change: harness.Replicas(2, 1),
		writes: harness.Once("proxy replicas", "event"), // a warning: they share no session store
	},
	{
		name:   "replicas-set",
		change: func(s *v1beta1.MCPServer) { n := int32(1); s.Spec.Replicas = &n },
		writes: harness.Once("proxy replicas"),
	},
	{
		name:   "backend-replicas",
		before: []harness.Change{harness.Replicas(1, 1)}, change: harness.Replicas(1, 2),
		writes: harness.Once("backend replicas"),
	},
	{
		name: "permission-profile",
		change: func(s *v1beta1.MCPServer) {
			s.Spec.PermissionProfile = &v1beta1.PermissionProfileRef{Type: v1beta1.PermissionProfileTypeBuiltin, Name: "none"}
		},
		writes: harness.Once("event"), // a warning: it has no effect
	},
	{
		name:   "body-size",
		change: func(s *v1beta1.MCPServer) { s.Spec.MaxRequestBodySize = 1 << 20 },
		writes: harness.Once("runconfig", "proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name:   "read-timeout",
		change: func(s *v1beta1.MCPServer) { s.Spec.ProxyReadTimeout = "90s" },
		writes: harness.Once("runconfig", "proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name:   "read-timeout-reworded", // is the same time
		before: []harness.Change{func(s *v1beta1.MCPServer) { s.Spec.ProxyReadTimeout = "90s" }},
		change: func(s *v1beta1.MCPServer) { s.Spec.ProxyReadTimeout = "1m30s" },
		writes: harness.WriteCount{},
	},
	{
		name: "session-tls",
		before: []harness.Change{func(s *v1beta1.MCPServer) {
			s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
		}},
		change: func(s *v1beta1.MCPServer) {
			s.Spec.SessionStorage.TLS = &v1beta1.RedisTLSConfig{CACertSecretRef: &v1beta1.SecretKeyRef{Name: "redis-ca", Key: "ca.crt"}}
		},
		writes: harness.Once("runconfig", "proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name: "scheduling", // of the proxy alone
		change: func(s *v1beta1.MCPServer) {
			s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				Tolerations: []v1beta1.Toleration{{Key: "dedicated", Operator: "Exists", Effect: "NoSchedule"}},
				Affinity: &v1beta1.Affinity{PodAntiAffinity: &v1beta1.PodAntiAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []v1beta1.WeightedPodAffinityTerm{{
						Weight: 100, PodAffinityTerm: v1beta1.PodAffinityTerm{
							LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mcpserver"}}, TopologyKey: "kubernetes.io/hostname",
						},
					}},
				}},
			}}
		},
		writes: harness.Once("proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name: "secrets", // are the backend's alone
		change: func(s *v1beta1.MCPServer) {
			s.Spec.Secrets = []v1beta1.SecretRef{{Name: "credentials", Key: "token", TargetEnvName: "TOKEN"}}
		},
		writes: harness.Once("backend"), rolls: []harness.Component{harness.Backend},
	},
	{
		name:   "authz",
		change: harness.InlineAuthorization,
		writes: harness.Once("authz", "runconfig", "proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name:   "account",
		change: harness.ServiceAccountOfUser,
		writes: harness.Once("delete account/backend", "backend"), rolls: []harness.Component{harness.Backend},
	},
	{
		name: "pull-secrets",
		change: func(s *v1beta1.MCPServer) {
			s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				ImagePullSecrets: []v1beta1.LocalObjectReference{{Name: "registry"}},
			}}
		},
		writes: harness.Once("account/proxy", "account/backend", "proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name: "deployment-annotation", // is no annotation of the pods
		change: func(s *v1beta1.MCPServer) {
			s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				ResourceMetadataOverrides: v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{"example.com/team": "a"}},
			}}
		},
		writes: harness.Once("proxy"),
	},
	{
		name: "proxy-mode", transport: v1beta1.TransportStdio,
		change: func(s *v1beta1.MCPServer) { s.Spec.ProxyMode = v1beta1.TransportSSE },
		writes: harness.Once("runconfig", "proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name: "restart", // is no edit of the spec
		change: func(s *v1beta1.MCPServer) {
			s.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05Z"}
		},
		writes: harness.Once("proxy"), rolls: []harness.Component{harness.Proxy},
	},
	{
		name:   "annotation",
		change: func(s *v1beta1.MCPServer) { s.Annotations = map[string]string{"example.com/note": "nothing"} },
		writes: harness.WriteCount{}, silent: true,
	},
	{
		name:   "label",
		change: func(s *v1beta1.MCPServer) { s.Labels = map[string]string{"example.com/note": "nothing"} },
		writes: harness.WriteCount{}, silent: true,
	},
	{
		name:   "group", // is a condition, and no part of any child; there is no such group
		change: func(s *v1beta1.MCPServer) { s.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "group"} },
		writes: harness.Once("event"),
	},
}

// TestWriteCountOfEdit changes one field at a time. Those children whose content changes are applied, once each, and the
// status is written at most twice. Pods are replaced where they have to be, and nowhere else.
func TestWriteCountOfEdit(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for _, e := range fieldEdits {
		transport := e.transport
		if transport == "" {
			transport = v1beta1.TransportStreamableHTTP
		}
		ns.Create(t, harness.Server(e.name, transport, e.before...))
	}
	for _, e := range fieldEdits {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			ns.AwaitSettled(t, e.name)
			ns.AwaitCalm(t, e.name)
			before := generationsOf(t, ns, e.name)

			begin := ns.Mark(t)
			ns.Edit(t, e.name, e.change)
			if !e.silent {
				ns.AwaitSettled(t, e.name)
			}
			status := ns.CheckWrites(t, e.name, begin, e.writes)
			switch {
			case e.silent && status > 0:
				t.Errorf("the status was written %d times, though nothing was to be told", status)
			case !e.silent && status > 2:
				t.Errorf("the status was written %d times, more than twice", status)
			}
			if diff := cmp.Diff(before.after(e.rolls), generationsOf(t, ns, e.name)); diff != "" {
				t.Errorf("the generations of pods are not as they should be (-want +got):\n%s", diff)
			}
			ns.CheckOwnership(t, e.name)
		})
	}
}

// generations counts the pod templates that a workload has had.
type generations map[harness.Component]int

func (g generations) after(rolled []harness.Component) generations {
	next := maps.Clone(g)
	for _, component := range rolled {
		next[component]++
	}
	return next
}

// generationsOf counts the ReplicaSets of the proxy and the ControllerRevisions of the backend.
func generationsOf(t *testing.T, ns *harness.Namespace, server string) generations {
	t.Helper()
	proxy := ns.MustObject(t, harness.Proxy, server).GetUID()
	backend := ns.MustObject(t, harness.Backend, server).GetUID()
	replicaSets, err := env.Core.AppsV1().ReplicaSets(ns.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revisions, err := env.Core.AppsV1().ControllerRevisions(ns.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := generations{}
	for i := range replicaSets.Items {
		if owner := metav1.GetControllerOf(&replicaSets.Items[i]); owner != nil && owner.UID == proxy {
			found[harness.Proxy]++
		}
	}
	for i := range revisions.Items {
		if owner := metav1.GetControllerOf(&revisions.Items[i]); owner != nil && owner.UID == backend {
			found[harness.Backend]++
		}
	}
	return found
}
