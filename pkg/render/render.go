// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// renderer renders one MCPServer. Its methods record what is wrong and go on, so that one pass finds all
// that is wrong; what they return is used only when nothing is.
type renderer struct {
	findings
	settings

	in        Input
	opts      Options
	server    *v1beta1.MCPServer
	name      string
	namespace string

	// backendAccount is the ServiceAccount of the backend's pods; empty for the namespace's default one.
	backendAccount string
	// templateEnv is the environment of the mcp container in podTemplateSpec.
	templateEnv []variable
	// resources are spec.resources; nil for none.
	resources  *corev1ac.ResourceRequirementsApplyConfiguration
	duplicates []duplicate
	intents    []Intent
	absent     []ObjectRef

	// proxy has the parts of the proxy that come from references, and used and hashes are these references and the hashes in their status.
	proxy  proxyParts
	used   []Reference
	hashes configs.Hashes
	// authServer is the reference to the authorization server that the proxy is, and authServerSpec what that is; nil for none.
	authServer     *reference
	authServerSpec *v1beta1.EmbeddedAuthServerConfig
}

// Render returns what each writer wants of each child of in.Server, which must not be nil. An error is
// always an *InvalidError and means that nothing may be written for this MCPServer. A problem with a reference is no error: it keeps
// only the proxy from being written, see Result.Held.
func Render(in Input, opts Options) (*Result, error) {
	r := &renderer{
		settings:  settingsOf(in.Server),
		in:        in,
		opts:      opts,
		server:    in.Server,
		name:      in.Server.Name,
		namespace: in.Server.Namespace,
		hashes:    configs.Hashes{},
	}
	if problem := bounds.Problem(in.Server); problem != "" {
		r.invalidSpec(v1beta1.ReasonTooLarge, "The MCPServer is too large: %s. Make it smaller. (--max-object-size sets the bytes.)", problem)
		return nil, &InvalidError{Problems: r.problems}
	}
	r.backendAccount = r.backendServiceAccount("", "")
	r.validate()
	r.resolveReferences()
	document := r.runConfig()
	template := r.userPodTemplate()
	r.noteRestart()
	r.notePermissionProfile()

	r.access()
	config := r.configMaps(document)
	r.backendServices()
	r.statefulSet(template)
	r.proxyService()
	r.deployment(config)
	r.noteDuplicates()
	r.noteTiers(template.Spec)
	r.notePullSecrets(template.Spec.ImagePullSecrets)
	r.noteEnforcement()

	if len(r.problems) > 0 {
		return nil, &InvalidError{Problems: slices.Concat(r.problems, r.held)}
	}
	r.dropHeld()
	r.linkDependencies()
	return &Result{
		Intents: r.intents, Absent: r.absent, Notices: r.notices, Warnings: r.warnings, Held: r.held,
		References: r.used, Hashes: r.hashes,
		SinglePod: r.stdio(), SharedSessions: r.sessionRedis() != nil, Unshared: r.proxy.unshared,
	}, nil
}

// Bounded returns the input without what is too large: what the operator keeps of objects that it watches.
func (in Input) Bounded(opts Options) Input {
	largest := opts.MaxObjectSize
	in.Server = bounds.Reduce(in.Server.DeepCopy(), largest)
	if in.AuthzConfigMap != nil {
		in.AuthzConfigMap = bounds.Reduce(in.AuthzConfigMap.DeepCopy(), 2*largest)
	}
	in.References.Objects = maps.Clone(in.References.Objects)
	for field, object := range in.References.Objects {
		in.References.Objects[field] = bounds.Reduce(object, largest)
	}
	in.References.Bundles = maps.Clone(in.References.Bundles)
	for name, bundle := range in.References.Bundles {
		in.References.Bundles[name] = bounds.Reduce(bundle.DeepCopy(), 2*largest)
	}
	return in
}

// want adds the intent for a child, which may be completed.
func (r *renderer) want(child *inventory.Child, config childConfig) *Intent {
	r.intents = append(r.intents, Intent{Child: child, Writer: child.Writer, Kind: child.Kind, Name: *config.GetName(), Config: config})
	return &r.intents[len(r.intents)-1]
}

// childConfig has the methods that the apply configurations of all kinds have.
type childConfig interface {
	runtime.ApplyConfiguration
	GetName() *string
}

// wantReplicas adds the intent for the number of pods of a child.
func (r *renderer) wantReplicas(child *inventory.Child, number *int32) {
	name := child.Name(r.name)
	r.intents = append(r.intents, Intent{
		Child: child, Writer: child.Replicas, Kind: child.Kind, Name: name, Config: Replicas(child.Kind, name, r.namespace, number),
	})
}

// wantNot names an object that an earlier spec may have asked for.
func (r *renderer) wantNot(child *inventory.Child) {
	r.absent = append(r.absent, ObjectRef{Kind: child.Kind, Name: child.Name(r.name)})
}

// linkDependencies names the objects on which each intent depends, as the inventory has them, in its order.
func (r *renderer) linkDependencies() {
	for i := range r.intents {
		intent := &r.intents[i]
		if intent.Writer != intent.Child.Writer {
			continue
		}
		for _, dependency := range intent.Child.DependsOn {
			if at := slices.IndexFunc(r.intents, func(other Intent) bool { return other.Child == dependency }); at >= 0 {
				intent.DependsOn = append(intent.DependsOn, ObjectRef{Kind: dependency.Kind, Name: r.intents[at].Name})
			}
		}
	}
}

// owner returns the reference by which the API server collects a child once its MCPServer is gone.
func (r *renderer) owner() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1beta1.SchemeGroupVersion.String()).
		WithKind(v1beta1.MCPServerKind).
		WithName(r.name).
		WithUID(r.server.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// replicas returns the number of pods to ask for; nil when the number is left to others.
func (r *renderer) replicas(field string, wanted *int32) *int32 {
	if wanted == nil {
		return nil
	}
	count := r.capped(*wanted)
	if count == *wanted {
		return &count
	}
	r.notice(v1beta1.ConditionStdioReplicaCapped, v1beta1.ReasonStdioTransportCapAt1,
		"spec.%s is %d and rendered as 1: a server with transport stdio talks to one proxy through one pod.",
		field, *wanted)
	return &count
}

// capped returns how many pods there may be of a number that is wanted.
func (r *renderer) capped(wanted int32) int32 {
	if r.stdio() {
		return min(wanted, 1)
	}
	return wanted
}

// kinds that children are of, under shorter names.
var (
	kindConfigMap      = managers.ConfigMap
	kindDeployment     = managers.Deployment
	kindService        = managers.ServiceKind
	kindServiceAccount = managers.ServiceAccount
	kindStatefulSet    = managers.StatefulSet
)
