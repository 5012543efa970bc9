// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// hands is how many MCPServers are made or changed at a time.
const hands = 16

// Fleet is a number of MCPServers of all transports that together use every field that needs no other custom
// resource. The ConfigMaps that some refer to are those of FleetConfigMaps.
func Fleet(count int) []*v1beta1.MCPServer {
	transports := []v1beta1.Transport{v1beta1.TransportStreamableHTTP, v1beta1.TransportStdio, v1beta1.TransportSSE}
	fleet := make([]*v1beta1.MCPServer, 0, count)
	for i := range count {
		// The two numbers have no common factor, so all combinations come up.
		transport, feature := transports[i%len(transports)], fleetFeatures[i%len(fleetFeatures)]
		fleet = append(fleet, Server(fmt.Sprintf("fleet-%03d", i), transport, feature))
	}
	return fleet
}

// fleetFeatures are what MCPServers differ in. Their number is no multiple of 3.
var fleetFeatures = []Change{
	func(*v1beta1.MCPServer) {},
	InlineAuthorization,
	ServiceAccountOfUser,
	Replicas(1, 1),
	PodTemplate(`{"metadata":{"annotations":{"example.com/team":"a"},"labels":{"example.com/tier":"back"}},
		"spec":{"priority":0,"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}],"nodeSelector":{"type":"kwok"},
		"volumes":[{"name":"tmp","emptyDir":{}},{"name":"token","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}},
		{"name":"info","downwardAPI":{"items":[{"path":"n","fieldRef":{"fieldPath":"metadata.name"}}]}}],
		"containers":[{"name":"mcp","resources":{"limits":{"cpu":"0.5","memory":"128Mi"}},
		"env":[{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"EMPTY"}],
		"ports":[{"containerPort":9100}],"volumeMounts":[{"name":"tmp","mountPath":"/tmp"}]},
		{"name":"side","image":"example.com/side:1","livenessProbe":{"httpGet":{"path":"/","port":1}}}]}}`),
	func(s *v1beta1.MCPServer) {
		s.Spec.Env = []v1beta1.EnvVar{{Name: "Z", Value: "1"}, {Name: "A", Value: ""}, {Name: "MCP_TRANSPORT", Value: "mine"}}
		s.Spec.Args = []string{"--flag", ""}
		s.Spec.Secrets = []v1beta1.SecretRef{{Name: "s", Key: "k", TargetEnvName: "TOKEN"}, {Name: "t", Key: "KEY"}}
	},
	func(s *v1beta1.MCPServer) {
		s.Spec.Resources = v1beta1.ResourceRequirements{
			Limits: v1beta1.ResourceList{CPU: "0.5", Memory: "1024Mi"}, Requests: v1beta1.ResourceList{CPU: "0.0001", Memory: "64M"},
		}
		s.Spec.Volumes = []v1beta1.Volume{{Name: "data", HostPath: "/data", MountPath: "/data", ReadOnly: true}}
		s.Spec.Audit = &v1beta1.AuditConfig{Enabled: true}
	},
	func(s *v1beta1.MCPServer) {
		meta := v1beta1.ResourceMetadataOverrides{
			Annotations: map[string]string{"example.com/team": "a"}, Labels: map[string]string{"example.com/tier": "front"},
		}
		s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{
			ProxyService: &meta,
			ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
				ResourceMetadataOverrides: meta, PodTemplateMetadataOverrides: &meta,
				Env:              []v1beta1.EnvVar{{Name: "HOME", Value: "/home"}, {Name: "TOOLHIVE_SECRET_X", Value: "y"}},
				ImagePullSecrets: []v1beta1.LocalObjectReference{{Name: "registry"}, {Name: ""}},
			},
		}
	},
	func(s *v1beta1.MCPServer) {
		replicas := int32(1)
		s.Spec.Replicas = &replicas
		s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{
			Provider: v1beta1.SessionStorageRedis, Address: "redis:6379", DB: 1, KeyPrefix: "p",
			PasswordRef: &v1beta1.SecretKeyRef{Name: "redis", Key: "password"},
		}
		s.Spec.RateLimiting = &v1beta1.RateLimitConfig{Shared: &v1beta1.RateLimitBucket{MaxTokens: 10, RefillPeriod: "1m30s"}}
	},
	func(s *v1beta1.MCPServer) {
		s.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
			Type: v1beta1.AuthzConfigTypeConfigMap, ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "fleet-policy"},
			GroupClaimName: "groups",
		}
	},
	func(s *v1beta1.MCPServer) {
		s.Spec.TrustProxyHeaders, s.Spec.EndpointPrefix, s.Spec.SessionAffinity = true, "/prefix", "None"
		s.Spec.ProxyMode = v1beta1.TransportSSE
		s.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "group"}
		s.Spec.PermissionProfile = &v1beta1.PermissionProfileRef{Type: v1beta1.PermissionProfileTypeBuiltin, Name: "none"}
		s.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05Z"}
	},
}

// fleetConfigMaps are what some MCPServers of a Fleet refer to.
var fleetConfigMaps = []*corev1.ConfigMap{
	{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet-policy"},
		Data: map[string]string{
			"authz.json": `{"version":"1.0","type":"cedarv1","cedar":{"policies":["permit(principal, action, resource);"],"entities_json":"[]"}}`,
		},
	},
}

// Launch makes the MCPServers of a Fleet, and what they refer to.
func (ns *Namespace) Launch(t *testing.T, fleet []*v1beta1.MCPServer) {
	t.Helper()
	for _, configMap := range fleetConfigMaps {
		_, err := ns.Core.CoreV1().ConfigMaps(ns.Name).Create(t.Context(), configMap, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	Each(t, fleet, func(server *v1beta1.MCPServer) error {
		_, err := ns.Servers.Create(t.Context(), server, metav1.CreateOptions{FieldManager: Author})
		return err
	})
}

// Each does something to each MCPServer, several at a time.
func Each(t *testing.T, fleet []*v1beta1.MCPServer, do func(*v1beta1.MCPServer) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(hands)
	for _, server := range fleet {
		group.Go(func() error {
			if err := do(server); err != nil {
				return fmt.Errorf("MCPServer %s: %w", server.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
