// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"slices"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// kubectlCommands are what humans do with kubectl.
var kubectlCommands = map[string]otherWriter{
	"scale-deployment": {
		spec: []harness.Change{scaled(1, 1)}, component: harness.Proxy, path: replicasPath,
		write:  runs("scale", "OBJECT", "--replicas=2"),
		then:   standings{value: becomes(int64(2)), owners: []string{"kubectl Update scale"}},
		class:  managers.ClassKubectl,
		end:    asks(scaled(2, 1)),
		lastly: standings{value: becomes(int64(2)), owners: []string{"freehold-proxy-replicas Apply", "kubectl Update scale"}},
	},
	"scale-statefulset": {
		spec: []harness.Change{scaled(1, 1)}, component: harness.Backend, path: replicasPath,
		write:  runs("scale", "OBJECT", "--replicas=2"),
		then:   standings{value: becomes(int64(2)), owners: []string{"kubectl Update scale"}},
		class:  managers.ClassKubectl,
		end:    runs("scale", "OBJECT", "--replicas=1"),
		lastly: standings{value: unchanged, owners: []string{"freehold-backend-replicas Apply", "kubectl Update scale"}},
	},
	// The API server keeps no record of a write of 0.
	"scale-deployment-to-none": {
		spec: []harness.Change{scaled(1, 1)}, component: harness.Proxy, path: replicasPath,
		write:  runs("scale", "OBJECT", "--replicas=0"),
		then:   standings{value: becomes(int64(0))},
		class:  managers.ClassUnknown,
		end:    asks(scaled(2, 1)),
		lastly: standings{value: becomes(int64(2)), owners: []string{"freehold-proxy-replicas Apply"}},
	},
	"scale-statefulset-to-none": {
		spec: []harness.Change{scaled(1, 1)}, component: harness.Backend, path: replicasPath,
		write:  runs("scale", "OBJECT", "--replicas=0"),
		then:   standings{value: becomes(int64(0))},
		class:  managers.ClassUnknown,
		end:    runs("scale", "OBJECT", "--replicas=1"),
		lastly: standings{value: unchanged, owners: []string{"freehold-backend-replicas Apply"}},
	},
	"scale-left-open": {
		component: harness.Proxy, path: replicasPath,
		write: runs("scale", "OBJECT", "--replicas=2"),
		// The API server keeps no record of who writes through a subresource what nobody has owned.
		then:   standings{value: becomes(int64(2)), count: harness.Once("event"), news: []string{"SessionStorageMissingForReplicas"}},
		end:    asks(image),
		lastly: standings{value: becomes(int64(2)), count: imageWrites},
	},
	"set-image-deployment": {
		component: harness.Proxy, path: imagePath,
		write: runs("set", "image", "OBJECT", "toolhive=example.com/other:1"),
		then:  standings{value: becomes("example.com/other:1"), owners: []string{"kubectl-set Update"}},
		class: managers.ClassKubectl,
		end: func(t *testing.T, s *scene) {
			t.Helper()
			runs("set", "image", "OBJECT", "toolhive="+harness.ValueAt(s.before.Object, imagePath).(string))(t, s)
		},
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply", "kubectl-set Update"}},
	},
	"set-image-statefulset": {
		component: harness.Backend, path: `.spec.template.spec.containers[name="mcp"].image`,
		write:  runs("set", "image", "OBJECT", "mcp=example.com/mcp:2"),
		then:   standings{value: becomes("example.com/mcp:2"), owners: []string{"kubectl-set Update"}},
		class:  managers.ClassKubectl,
		end:    asks(image),
		lastly: standings{value: becomes("example.com/mcp:2"), owners: []string{"freehold-backend Apply", "kubectl-set Update"}, count: imageWrites},
	},
	"set-env": {
		component: harness.Proxy, path: `.spec.template.spec.containers[name="toolhive"].env[name="OPERATOR_OPENSHIFT"].value`,
		write:  runs("set", "env", "OBJECT", "OPERATOR_OPENSHIFT=true"),
		then:   standings{value: becomes("true"), owners: []string{"kubectl-set Update"}},
		class:  managers.ClassKubectl,
		end:    runs("set", "env", "OBJECT", "OPERATOR_OPENSHIFT=false"),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply", "kubectl-set Update"}},
	},
	"set-env-foreign": {
		component: harness.Backend, path: `.spec.template.spec.containers[name="mcp"].env[name="THEIRS"].value`,
		write:  runs("set", "env", "OBJECT", "THEIRS=here"),
		then:   standings{value: becomes("here"), owners: []string{"kubectl-set Update"}},
		end:    asks(image),
		lastly: standings{value: becomes("here"), owners: []string{"kubectl-set Update"}, count: imageWrites},
	},
	"edit": {
		component: harness.Proxy, path: gracePath,
		write:  editsGrace("30", "45"),
		then:   standings{value: becomes(int64(45)), owners: []string{"kubectl-edit Update"}},
		class:  managers.ClassKubectl,
		end:    editsGrace("45", "30"),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply", "kubectl-edit Update"}},
	},
	"patch": {
		component: harness.ProxyService, path: ".spec.sessionAffinity",
		write: runs("patch", "OBJECT", "--type=merge", `--patch={"spec":{"sessionAffinity":"None","sessionAffinityConfig":null}}`),
		then:  standings{value: becomes("None"), owners: []string{"kubectl-patch Update"}},
		class: managers.ClassKubectl,
		end:   asks(func(s *v1beta1.MCPServer) { s.Spec.SessionAffinity = "None" }),
		lastly: standings{
			value: becomes("None"), owners: []string{"freehold-service Apply", "kubectl-patch Update"},
			count: harness.Once("service/proxy", "service/backend"),
		},
	},
	"annotate": {
		spec: []harness.Change{annotated("ours")}, component: harness.Proxy, path: ".metadata.annotations.example.com/note",
		write:  runs("annotate", "OBJECT", "--overwrite", "example.com/note=theirs"),
		then:   standings{value: becomes("theirs"), owners: []string{"kubectl-annotate Update"}},
		class:  managers.ClassKubectl,
		end:    asks(annotated("theirs")),
		lastly: standings{value: becomes("theirs"), owners: []string{"freehold-proxy Apply", "kubectl-annotate Update"}},
	},
	"annotate-foreign": {
		component: harness.Backend, path: ".metadata.annotations.example.com/note",
		write:  runs("annotate", "OBJECT", "example.com/note=theirs"),
		then:   standings{value: becomes("theirs"), owners: []string{"kubectl-annotate Update"}},
		end:    asks(image),
		lastly: standings{value: becomes("theirs"), owners: []string{"kubectl-annotate Update"}, count: imageWrites},
	},
	"label": {
		component: harness.Proxy, path: ".metadata.labels.toolhive",
		write:  runs("label", "OBJECT", "--overwrite", "toolhive=theirs"),
		then:   standings{value: becomes("theirs"), owners: []string{"kubectl-label Update"}},
		class:  managers.ClassKubectl,
		end:    runs("label", "OBJECT", "--overwrite", "toolhive=true"),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply", "kubectl-label Update"}},
	},
	"label-foreign": {
		component: harness.ProxyService, path: ".metadata.labels.team",
		write:  runs("label", "OBJECT", "team=theirs"),
		then:   standings{value: becomes("theirs"), owners: []string{"kubectl-label Update"}},
		end:    asks(image),
		lastly: standings{value: becomes("theirs"), owners: []string{"kubectl-label Update"}, count: imageWrites},
	},
	"restart-deployment": {
		component: harness.Proxy, path: restartedPath,
		write:  runs("rollout", "restart", "OBJECT"),
		then:   standings{value: anything, owners: []string{"kubectl-rollout Update"}},
		end:    asks(image),
		lastly: standings{value: anything, owners: []string{"kubectl-rollout Update"}, count: imageWrites},
	},
	"restart-statefulset": {
		component: harness.Backend, path: restartedPath,
		write:  runs("rollout", "restart", "OBJECT"),
		then:   standings{value: anything, owners: []string{"kubectl-rollout Update"}},
		end:    asks(image),
		lastly: standings{value: anything, owners: []string{"kubectl-rollout Update"}, count: imageWrites},
	},
	"rule": {
		component: harness.ProxyRole, path: ".rules",
		write: runs("patch", "OBJECT", "--type=json",
			`--patch=[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}}]`),
		then: standings{value: func(before, _ any) any {
			rule := map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"get"}}
			return append(slices.Clip(before.([]any)), rule)
		}, owners: []string{"kubectl-patch Update"}},
		class: managers.ClassKubectl,
		end: func(t *testing.T, s *scene) {
			putBack("rules")(t, s.Namespace, s.server, s.component, s.before)
		},
		lastly: standings{value: unchanged, owners: []string{"freehold-access Apply", "kubectl-edit Update"}},
	},
	"reset": {
		component: harness.Backend, path: `.spec.template.spec.containers[name="mcp"].image`,
		write: runs("patch", "OBJECT", "--type=json", `--patch=[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`),
		then: standings{
			value: unchanged, owners: []string{"freehold-backend Apply"},
			count: harness.Once("backend", "event"), news: []string{"OwnershipLost"},
		},
		end:    asks(image),
		lastly: standings{value: becomes("example.com/mcp:2"), owners: []string{"freehold-backend Apply"}, count: imageWrites},
	},
}

const restartedPath = ".spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt"

// imageWrites is what it costs to ask for another MCP server.
var imageWrites = harness.Once("runconfig", "backend", "proxy")

// editsGrace is kubectl edit with an editor that replaces the grace period of the pods.
func editsGrace(before, after string) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		const field = "terminationGracePeriodSeconds: "
		s.kubectl.Do(t, harness.Call{
			Args:   []string{"edit", s.object()},
			Editor: `sed -i "s/` + field + before + "/" + field + after + `/"`,
		})
	}
}

// annotated asks for an annotation of the Deployment.
func annotated(value string) harness.Change {
	return func(server *v1beta1.MCPServer) {
		server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
			ResourceMetadataOverrides: v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{"example.com/note": value}},
		}}
	}
}

// kubectlAppliers are what humans, and pipelines, do with kubectl apply.
var kubectlAppliers = map[string]otherWriter{
	"apply": {
		component: harness.Proxy, path: gracePath,
		write:  appliesDump("45"),
		then:   standings{value: becomes(int64(45)), owners: []string{"kubectl-client-side-apply Update"}},
		class:  managers.ClassKubectl,
		end:    appliesDump("30"),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply", "kubectl-client-side-apply Update"}},
	},
	"apply-as-it-is": {
		component: harness.Proxy, path: gracePath,
		write:  appliesDump("30"),
		then:   standings{value: unchanged, owners: []string{"freehold-proxy Apply"}},
		end:    asks(image),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply"}, count: imageWrites},
	},
	"apply-server-side": {
		component: harness.ProxyRole, path: ".rules",
		write: func(t *testing.T, s *scene) {
			t.Helper()
			_, err := s.kubectl.Try(t.Context(), harness.Call{Args: serverSide, Input: s.manifest("rules: []")})
			if err == nil || !strings.Contains(err.Error(), `conflict with "freehold-access"`) {
				t.Fatalf("kubectl should refuse and name the other side: %v", err)
			}
		},
		then:   standings{value: unchanged, owners: []string{"freehold-access Apply"}},
		end:    asks(image),
		lastly: standings{value: anything, owners: []string{"freehold-access Apply"}, count: imageWrites},
	},
	"apply-server-side-by-force": {
		component: harness.RunConfig, path: componentPath,
		write:  appliesByForce("metadata: {labels: {toolhive.stacklok.io/component: theirs}}"),
		then:   standings{value: becomes("theirs"), owners: []string{"kubectl Apply"}},
		class:  managers.ClassKubectl,
		end:    appliesByForce(""),
		lastly: standings{value: unchanged, owners: []string{"freehold-runconfig Apply"}},
	},
}

// serverSide are the arguments of a server-side apply of what is given as input.
var serverSide = []string{"apply", "--server-side", "-f", "-"}

// appliesByForce applies fields with kubectl, whoever owns them, or gives all up that it has.
func appliesByForce(fields string) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		s.kubectl.Do(t, harness.Call{
			Args:  append(slices.Clip(serverSide), "--force-conflicts"),
			Input: s.manifest(fields),
		})
	}
}

// manifest is a manifest of the scene's object with some fields alone.
func (s *scene) manifest(fields string) string {
	name := "metadata: {name: " + s.before.GetName()
	if more, ok := strings.CutPrefix(fields, "metadata: {"); ok {
		fields = name + ", " + more
	} else {
		fields = name + "}\n" + fields
	}
	return "apiVersion: " + s.before.GetAPIVersion() + "\nkind: " + s.before.GetKind() + "\n" + fields + "\n"
}

// appliesDump takes the object as it is, with another grace period, for a manifest, and applies that on the client's side.
func appliesDump(grace string) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		const field = "terminationGracePeriodSeconds: "
		dump := s.kubectl.Run(t, "get", s.object(), "-o", "yaml")
		for _, other := range []string{"30", "45"} {
			dump = strings.ReplaceAll(dump, field+other+"\n", field+grace+"\n")
		}
		s.kubectl.Do(t, harness.Call{Args: []string{"apply", "-f", "-"}, Input: dump})
	}
}
