// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managers lists Freehold's field managers and the fields that each of them claims. It is the
// only place where a manager is named; the table "who writes what" in the README is generated from it.
package managers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// Names of Freehold's field managers. Each writer has its own name: two writers with one name would replace each other's
// fields without a conflict.
const (
	Finalizer       = "freehold-finalizer"
	Status          = "freehold-status"
	Requests        = "freehold-requests"
	Takeover        = "freehold-takeover"
	RunConfig       = "freehold-runconfig"
	Authz           = "freehold-authz"
	Access          = "freehold-access"
	Proxy           = "freehold-proxy"
	ProxyReplicas   = "freehold-proxy-replicas"
	Backend         = "freehold-backend"
	BackendReplicas = "freehold-backend-replicas"
	Service         = "freehold-service"
	// ConfigFinalizer, ConfigStatus and GroupStatus write the objects that MCPServers refer to, see Configs.
	ConfigFinalizer = "freehold-config-finalizer"
	ConfigStatus    = "freehold-config-status"
	GroupStatus     = "freehold-group-status"
	// Ownership owns no field. It is the name under which Freehold edits managedFields.
	Ownership = "freehold-ownership"
)

// Kinds that Freehold writes.
var (
	MCPServer      = v1beta1.Kind(v1beta1.MCPServerKind)
	Deployment     = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	StatefulSet    = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	ServiceKind    = schema.GroupKind{Kind: "Service"}
	ConfigMap      = schema.GroupKind{Kind: "ConfigMap"}
	ServiceAccount = schema.GroupKind{Kind: "ServiceAccount"}
	Role           = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	RoleBinding    = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}
)

// CountsReplicas reports whether a writer writes the number of replicas of a workload that another writer creates.
func CountsReplicas(writer string) bool { return writer == ProxyReplicas || writer == BackendReplicas }

// Registry returns a new registry of all of Freehold's writers.
func Registry() *fieldmanager.Registry {
	r := &fieldmanager.Registry{}
	register(
		r,
		fieldmanager.Writer{
			Name: Finalizer, Kind: MCPServer, Summary: "the one finalizer",
			Claim: fieldmanager.Within(fieldmanager.Path("metadata", "finalizers", value.NewValueInterface(v1beta1.Finalizer))),
		},
		fieldmanager.Writer{
			Name: Status, Kind: MCPServer, Subresource: "status", Claim: statusClaim(),
			Summary: "phase, message, url, readyReplicas, observedGeneration, hashes, Freehold's conditions",
		},
		fieldmanager.Writer{
			Name: Requests, Kind: MCPServer, Summary: "the annotation " + v1beta1.AnnotationTakeRecord,
			Claim: fieldmanager.Within(fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationTakeRecord)),
		},
		fieldmanager.Writer{
			Name: Takeover, Kind: MCPServer, Summary: "the annotation " + v1beta1.AnnotationTakeoverProgress,
			Claim: fieldmanager.Within(fieldmanager.Path("metadata", "annotations", v1beta1.AnnotationTakeoverProgress)),
		},
		fieldmanager.Writer{
			Name: RunConfig, Kind: ConfigMap, Object: "RunConfig", Claim: configMapClaim(),
			Summary: "data, immutable, labels, annotations, ownerReferences",
		},
		fieldmanager.Writer{
			Name: Authz, Kind: ConfigMap, Object: "inline authorization", Claim: configMapClaim(),
			Summary: "data, immutable, labels, annotations, ownerReferences",
		},
		fieldmanager.Writer{
			Name: Access, Kind: ServiceAccount, Summary: "all that is set",
			Claim: fieldmanager.Within(append(metadata(), fieldmanager.Path("imagePullSecrets"))...),
		},
		fieldmanager.Writer{
			Name: Access, Kind: Role, Summary: "all that is set",
			Claim: fieldmanager.Within(append(metadata(), fieldmanager.Path("rules"))...),
		},
		fieldmanager.Writer{
			Name: Access, Kind: RoleBinding, Summary: "all that is set",
			Claim: fieldmanager.Within(append(metadata(), fieldmanager.Path("roleRef"), fieldmanager.Path("subjects"))...),
		},
		fieldmanager.Writer{
			Name: Backend, Kind: StatefulSet, Summary: "everything but spec.replicas", Claim: workloadClaim(),
		},
		fieldmanager.Writer{
			Name: BackendReplicas, Kind: StatefulSet, Summary: "spec.replicas and the annotations about it", Claim: replicasClaim(),
		},
		fieldmanager.Writer{
			Name: Proxy, Kind: Deployment, Summary: "everything but spec.replicas", Claim: workloadClaim(),
		},
		fieldmanager.Writer{
			Name: ProxyReplicas, Kind: Deployment, Summary: "spec.replicas and the annotations about it", Claim: replicasClaim(),
		},
		fieldmanager.Writer{
			Name: Service, Kind: ServiceKind, Summary: "all that is set",
			Claim: fieldmanager.Within(append(metadata(), fieldmanager.Path("spec"))...),
		},
	)
	register(r, configWriters()...)
	edited := map[schema.GroupKind]bool{}
	for _, w := range r.Writers() {
		if edited[w.Kind] {
			continue
		}
		edited[w.Kind] = true
		r.MustRegister(fieldmanager.Writer{
			Name: Ownership, Kind: w.Kind, Summary: "no field: edits managedFields to transfer or release a claim",
		})
	}
	return r
}

func configMapClaim() fieldmanager.Claim {
	return fieldmanager.Within(append(metadata(), fieldmanager.Path("data"), fieldmanager.Path("immutable"))...)
}

// metadata returns the part of an object's metadata that Freehold sets.
func metadata() []fieldpath.Path {
	return []fieldpath.Path{
		fieldmanager.Path("metadata", "labels"),
		fieldmanager.Path("metadata", "annotations"),
		fieldmanager.Path("metadata", "ownerReferences"),
	}
}

func replicasPath() fieldpath.Path { return fieldmanager.Path("spec", "replicas") }

// replicasClaim claims the number of replicas, and the annotations that record what it was written from, and the number itself.
func replicasClaim() fieldmanager.Claim {
	annotation := func(key string) fieldpath.Path { return fieldmanager.Path("metadata", "annotations", key) }
	return fieldmanager.Within(replicasPath(), annotation(v1beta1.AnnotationReplicasSource), annotation(v1beta1.AnnotationReplicasWritten))
}

func workloadClaim() fieldmanager.Claim {
	return fieldmanager.Claim{
		Within: append(metadata(), fieldmanager.Path("spec")),
		Except: replicasClaim().Within,
	}
}

func statusClaim() fieldmanager.Claim {
	fields := []string{"phase", "message", "url", "readyReplicas", "observedGeneration"}
	for _, config := range Configs() {
		fields = append(fields, config.Hashes...)
	}
	return statusFields(fields, v1beta1.OwnedConditions())
}
