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

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// References are the custom resources that an MCPServer's spec names, all of one moment, and the ConfigMaps that these name.
type References struct {
	Objects configs.Objects
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
	in.Objects = configs.Objects{}
	for ref := range configs.References() {
		named, ok := ref.Named(spec)
		if !ok {
			continue
		}
		found, unavailable := get(ref.Kind.Name, named.Name)
		if unavailable != nil {
			if in.Unavailable == nil {
				in.Unavailable = map[string]Unavailable{}
			}
			in.Unavailable[ref.Kind.Name] = *unavailable
		}
		if object, ok := found.(metav1.Object); ok {
			in.Objects[ref.Field] = object
		}
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

// reference is a reference of the spec, and how conditions report it. Its reasons may say more than those of its row.
type reference struct {
	configs.Reference
	name string
	// object is nil when there is none.
	object metav1.Object
}

// text names the referenced object.
func (ref *reference) text() string { return ref.Kind.Name + " " + quote(ref.name) }

// refer returns a reference, which is nil when the spec has none, and the object; nil when there is none.
func refer[T metav1.Object](r *renderer, to configs.To[T]) (ref *reference, found T) {
	named, ok := to.Named(&r.server.Spec)
	if !ok {
		return nil, found
	}
	ref = &reference{Reference: *to.Reference, name: named.Name}
	if found, ok = r.in.References.Objects[to.Field].(T); ok {
		ref.object = found
	}
	return ref, found
}

// usable reports whether the object that a reference names can be used, and records why not. It can if it exists, its spec passes
// check, and no other operator has found the spec of this very generation to be invalid. check is nil where the proxy takes whatever is
// valid. Whether another operator has looked at the object at all makes no difference: a spec that has passed here is used without a
// wait, and gets a hash here if no operator has recorded one.
func (r *renderer) usable(ref *reference, check func() error) bool {
	unavailable, blind := r.in.References.Unavailable[ref.Kind.Name]
	switch {
	case blind && unavailable.Unserved:
		r.hold(ref, ref.NotFound, "spec.%s names the %s, and the API server does not serve that kind: %s.", ref.Field, ref.text(), unavailable.Cause)
		return false
	case blind:
		r.hold(ref, ref.Unavailable, "spec.%s names the %s, and Freehold cannot tell whether it exists: %s.", ref.Field, ref.text(), unavailable.Cause)
		return false
	case ref.object == nil:
		r.hold(ref, ref.NotFound, "spec.%s names the %s, which does not exist in the namespace %s.", ref.Field, ref.text(), r.namespace)
		return false
	}
	r.used = append(r.used, referenceTo(ref.Kind.Name, ref.object))
	config := configs.Read(ref.object)
	if check == nil || config.Known() != nil {
		check = config.Validate
	}
	if err := check(); err != nil {
		r.hold(ref, ref.Invalid, "The %s of spec.%s cannot be used: %s.", ref.text(), ref.Field, oneLine(err))
		return false
	}
	if why, invalid := foundInvalid(ref.object, config.Status); invalid {
		r.hold(ref, ref.Invalid, "The %s of spec.%s has the condition Valid=False: %s.", ref.text(), ref.Field, strings.TrimSuffix(why, "."))
		return false
	}
	hash := config.Status.ConfigHash
	if hash == "" {
		hash, _ = config.Hash() // It was decoded from JSON, so it can be encoded.
	}
	r.hashes[ref.Field] = hash
	message := fmt.Sprintf("%s is valid and ready", ref.text())
	if ref.object.GetDeletionTimestamp() != nil {
		message += "; it is being deleted, and goes when nothing refers to it"
	}
	r.notice(ref.Condition, ref.Valid, "%s", message)
	return true
}

// hold records a problem that keeps the proxy, and the objects that it reads, from being written. All others are written.
func (r *renderer) hold(ref *reference, reason, format string, args ...any) {
	r.holdFor(ref.Condition, reason, format, args...)
	delete(r.hashes, ref.Field)
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
	ref, group := refer(r, configs.GroupRef)
	if ref == nil {
		return
	}
	switch unavailable, blind := r.in.References.Unavailable[configs.Group]; {
	case blind:
		r.warn(ref.Condition, v1beta1.ReasonGroupRefNotFound, "Freehold cannot tell whether the MCPGroup %s exists: %s.", quote(ref.name), unavailable.Cause)
	case group == nil:
		r.warn(ref.Condition, v1beta1.ReasonGroupRefNotFound, "The MCPGroup %s does not exist in the namespace %s; this MCPServer is in no group.",
			quote(ref.name), r.namespace)
	case group.DeletionTimestamp != nil:
		r.warn(ref.Condition, v1beta1.ReasonGroupRefNotFound, "The MCPGroup %s is being deleted.", quote(ref.name))
	case group.Status.Phase != v1beta1.MCPGroupPhaseReady:
		r.warn(ref.Condition, v1beta1.ReasonGroupRefNotReady, "The MCPGroup %s is not ready.", quote(ref.name))
	default:
		r.notice(ref.Condition, v1beta1.ReasonGroupRefIsValid, "MCPGroup '%s' is valid and ready", ref.name)
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
func (in *References) ConfigMaps() (names []string) {
	for _, object := range in.Objects {
		if config := configs.Read(object); config != nil {
			names = append(names, config.ConfigMaps()...)
		}
	}
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
