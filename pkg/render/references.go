// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// References are the custom resources that an MCPServer's spec names, all of one moment, and the ConfigMaps that these name. One
// that the spec does not name, or that does not exist, is nil.
type References struct {
	OIDC         *v1beta1.MCPOIDCConfig
	Authz        *v1beta1.MCPAuthzConfig
	ExternalAuth *v1beta1.MCPExternalAuthConfig
	AuthServer   *v1beta1.MCPExternalAuthConfig
	Tool         *v1beta1.MCPToolConfig
	Telemetry    *v1beta1.MCPTelemetryConfig
	Webhook      *v1alpha1.MCPWebhookConfig
	Group        *v1beta1.MCPGroup
	// Bundles are the ConfigMaps with certificate authorities, by name.
	Bundles map[string]*corev1.ConfigMap
	// Unavailable says, by kind, why it is not known which objects of the kind there are.
	Unavailable map[string]Unavailable
}

// Unavailable is why nothing is known of a kind.
type Unavailable struct {
	// Unserved reports that the API server does not know the kind: its CustomResourceDefinition is not installed.
	Unserved bool
	// Cause says it in words.
	Cause string
}

// Collect returns the objects that a spec refers to, except ConfigMaps. get returns the object of a kind and a name, a pointer to its
// type; nil when it does not exist, and why, where nothing is known of that kind.
func Collect(spec *v1beta1.MCPServerSpec, get func(kind, name string) (any, *Unavailable)) (in References) {
	find := func(kind, name string) any {
		found, unavailable := get(kind, name)
		if unavailable != nil {
			if in.Unavailable == nil {
				in.Unavailable = map[string]Unavailable{}
			}
			in.Unavailable[kind] = *unavailable
		}
		return found
	}
	if ref := spec.OIDCConfigRef; ref != nil {
		in.OIDC, _ = find(configs.OIDC, ref.Name).(*v1beta1.MCPOIDCConfig)
	}
	if ref := spec.AuthzConfigRef; ref != nil {
		in.Authz, _ = find(configs.AuthzConfig, ref.Name).(*v1beta1.MCPAuthzConfig)
	}
	if ref := spec.ExternalAuthConfigRef; ref != nil {
		in.ExternalAuth, _ = find(configs.ExternalAuth, ref.Name).(*v1beta1.MCPExternalAuthConfig)
	}
	if ref := spec.AuthServerRef; ref != nil {
		in.AuthServer, _ = find(configs.ExternalAuth, ref.Name).(*v1beta1.MCPExternalAuthConfig)
	}
	if ref := spec.ToolConfigRef; ref != nil {
		in.Tool, _ = find(configs.Tool, ref.Name).(*v1beta1.MCPToolConfig)
	}
	if ref := spec.TelemetryConfigRef; ref != nil {
		in.Telemetry, _ = find(configs.Telemetry, ref.Name).(*v1beta1.MCPTelemetryConfig)
	}
	if ref := spec.WebhookConfigRef; ref != nil {
		in.Webhook, _ = find(configs.Webhook, ref.Name).(*v1alpha1.MCPWebhookConfig)
	}
	if ref := spec.GroupRef; ref != nil {
		in.Group, _ = find(configs.Group, ref.Name).(*v1beta1.MCPGroup)
	}
	return in
}

// Unserved is why there are no objects of a kind that the API server does not know.
func Unserved(kind string) Unavailable {
	return Unavailable{Unserved: true, Cause: "the CustomResourceDefinition of " + kind + " is not installed"}
}

// Reference identifies a state of an object that something was rendered from besides the MCPServer.
type Reference struct {
	// Name is the kind, in lower case, and the name, for example mcpoidcconfig/corporate.
	Name string
	UID  types.UID
	// Generation is 0 for kinds without one.
	Generation      int64
	ResourceVersion string
}

func referenceTo(kind string, object metav1.Object) Reference {
	return Reference{
		Name: strings.ToLower(kind) + "/" + object.GetName(), UID: object.GetUID(), Generation: object.GetGeneration(),
		ResourceVersion: object.GetResourceVersion(),
	}
}

// reference is a reference of the spec, and how conditions report it.
type reference struct {
	// field of the spec, and the kind and the name of what it refers to.
	field, kind, name string
	condition         string
	// Reasons of that condition.
	valid, notFound, invalid, unavailable string
	hash                                  *string
}

// text names the referenced object.
func (ref *reference) text() string { return ref.kind + " " + quote(ref.name) }

// config is what the referenced custom resources have in common.
type config interface {
	comparable
	metav1.Object
}

// validate returns the check of a kind of which the proxy takes whatever is valid.
func validate[T config](found T) error { return configs.Validate(found) }

// usable reports whether the object that a reference names can be used, and records why not. It can if it exists, its spec passes
// check, and no other operator has found the spec of this very generation to be invalid. Whether another operator has looked at it
// at all makes no difference: a spec that has passed here is used without a wait, and gets a hash here if no operator has recorded
// one.
func usable[T config](r *renderer, ref *reference, found T, check func(T) error) bool {
	var none T
	unavailable, blind := r.in.References.Unavailable[ref.kind]
	switch {
	case blind && unavailable.Unserved:
		r.hold(ref, ref.notFound, "spec.%s names the %s, and the API server does not serve that kind: %s.", ref.field, ref.text(), unavailable.Cause)
		return false
	case blind:
		r.hold(ref, ref.unavailable, "spec.%s names the %s, and Freehold cannot tell whether it exists: %s.", ref.field, ref.text(), unavailable.Cause)
		return false
	case found == none:
		r.hold(ref, ref.notFound, "spec.%s names the %s, which does not exist in the namespace %s.", ref.field, ref.text(), r.namespace)
		return false
	}
	r.used = append(r.used, referenceTo(ref.kind, found))
	if err := check(found); err != nil {
		r.hold(ref, ref.invalid, "The %s of spec.%s cannot be used: %s.", ref.text(), ref.field, oneLine(err))
		return false
	}
	state := configs.StatusOf(found)
	if why, invalid := foundInvalid(found, state); invalid {
		r.hold(ref, ref.invalid, "The %s of spec.%s has the condition Valid=False: %s.", ref.text(), ref.field, strings.TrimSuffix(why, "."))
		return false
	}
	if *ref.hash = state.ConfigHash; *ref.hash == "" {
		*ref.hash, _ = configs.HashOf(found) // It was decoded from JSON, so it can be encoded.
	}
	message := fmt.Sprintf("%s is valid and ready", ref.text())
	if found.GetDeletionTimestamp() != nil {
		message += "; it is being deleted, and goes when nothing refers to it"
	}
	r.notice(ref.condition, ref.valid, "%s", message)
	return true
}

// hold records a problem that keeps the proxy, and the objects that it reads, from being written. All others are written.
func (r *renderer) hold(ref *reference, reason, format string, args ...any) {
	r.holdFor(ref.condition, reason, format, args...)
	*ref.hash = ""
}

func (r *renderer) holdFor(condition, reason, format string, args ...any) {
	r.notices = slices.DeleteFunc(r.notices, func(p Problem) bool { return p.Condition == condition })
	r.held = append(r.held, Problem{condition, reason, clip(fmt.Sprintf(format, args...), maxMessage)})
}

// resolveReferences takes all that the proxy is made of from the objects that the spec refers to. It goes on after one that cannot be
// used, so that all such objects are reported.
func (r *renderer) resolveReferences() {
	r.resolveTelemetry()
	r.resolveExternalAuth()
	r.resolveWebhooks()
	r.resolveTools()
	r.resolveOIDC()
	r.resolveAuthz()
	r.resolveAuthServer()
	r.proxy.sumBundles()
	r.noteGroup()
}

// dropHeld removes what must not be written while a reference cannot be used: the proxy's template, and the documents that it
// names. A running proxy keeps those that it has.
func (r *renderer) dropHeld() {
	if len(r.held) > 0 {
		r.intents = slices.DeleteFunc(r.intents, Intent.IsOfProxy)
	}
}

// IsOfProxy reports whether an intent is one of the proxy's template, or of an object that the template reads.
func (i Intent) IsOfProxy() bool {
	switch i.Child {
	case inventory.RunConfig, inventory.InlineAuthz:
		return true
	case inventory.Proxy:
		return i.Writer == i.Child.Writer
	}
	return false
}

// noteGroup records whether the group exists. Membership does not affect what is rendered.
func (r *renderer) noteGroup() {
	wanted := r.server.Spec.GroupRef
	if wanted == nil {
		return
	}
	const condition = v1beta1.ConditionGroupRefValidated
	group := r.in.References.Group
	switch unavailable, blind := r.in.References.Unavailable[configs.Group]; {
	case blind:
		r.warn(condition, v1beta1.ReasonGroupRefNotFound, "Freehold cannot tell whether the MCPGroup %s exists: %s.", quote(wanted.Name), unavailable.Cause)
	case group == nil:
		r.warn(condition, v1beta1.ReasonGroupRefNotFound, "The MCPGroup %s does not exist in the namespace %s; this MCPServer is in no group.",
			quote(wanted.Name), r.namespace)
	case group.DeletionTimestamp != nil:
		r.warn(condition, v1beta1.ReasonGroupRefNotFound, "The MCPGroup %s is being deleted.", quote(wanted.Name))
	case group.Status.Phase != v1beta1.MCPGroupPhaseReady:
		r.warn(condition, v1beta1.ReasonGroupRefNotReady, "The MCPGroup %s is not ready.", quote(wanted.Name))
	default:
		r.notice(condition, v1beta1.ReasonGroupRefIsValid, "MCPGroup '%s' is valid and ready", wanted.Name)
	}
}

// AddBundles adds the ConfigMaps that the objects name. read returns one, or nil where it does not exist; ok is false as soon as it
// does not know.
func (in *References) AddBundles(read func(name string) (found *corev1.ConfigMap, ok bool)) (ok bool) {
	for _, name := range in.ConfigMaps() {
		found, ok := read(name)
		if !ok {
			return false
		}
		if found == nil {
			continue
		}
		if in.Bundles == nil {
			in.Bundles = map[string]*corev1.ConfigMap{}
		}
		in.Bundles[name] = found
	}
	return true
}

// ConfigMaps returns the names of the ConfigMaps with certificate authorities that the references name, sorted.
func (in *References) ConfigMaps() []string {
	names := slices.Concat(configs.ConfigMaps(in.OIDC), configs.ConfigMaps(in.Telemetry), configs.ConfigMaps(in.ExternalAuth), configs.ConfigMaps(in.AuthServer))
	slices.Sort(names)
	return slices.Compact(names)
}

// Unread reports whether there is anything of which it is not known whether it exists, and which the proxy is made of. A kind that
// is not served has no objects.
func (in *References) Unread() bool {
	for kind, unavailable := range in.Unavailable {
		if !unavailable.Unserved && kind != configs.Group {
			return true
		}
	}
	return false
}
