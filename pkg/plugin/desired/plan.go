// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/workload"
	"github.com/freehold-dev/freehold/pkg/writers"
)

// Input is everything that is to be known of an MCPServer.
type Input struct {
	// Server is the MCPServer.
	Server *v1beta1.MCPServer
	// Child returns a child as it is; nil when it does not exist, or is not known.
	Child func(ref apply.ObjectRef) *unstructured.Unstructured
	// Children are those that exist.
	Children []*unstructured.Unstructured
	// Hides reports whether a child may exist that is not known; nil when all are known.
	Hides func(ref apply.ObjectRef) bool
	// AuthzConfigMap is the one that the MCPServer refers to; nil for none.
	AuthzConfigMap *corev1.ConfigMap
	// References are the objects that the MCPServer refers to, and the ConfigMaps that these name.
	References render.References
	// Options of the operator.
	Options render.Options
	// Process is the process to which the runner of a proxy with transport stdio is to be attached; empty for the one that
	// the proxy's Deployment names.
	Process string
}

// Intent is one writer's intent for one object.
type Intent struct {
	// Planned is what the writer would do.
	*apply.Planned
	// Writer is the field manager.
	Writer string
	// Object that it writes.
	Object apply.ObjectRef
	// Live is the object as it is; nil when it does not exist.
	Live *unstructured.Unstructured
	// Waits says why it is not written yet; empty when nothing is in the way.
	Waits string
	// Contested are the fields that others hold at another value. While there are any, nothing is written.
	Contested []Contested
}

// Plan is what the operator would do for an MCPServer.
type Plan struct {
	// Intents of all writers, in the order in which they are written.
	Intents []Intent
	// Unwanted are children that exist and that the MCPServer does not ask for any more. They are deleted.
	Unwanted []apply.ObjectRef
	// Held are the problems with references that keep the proxy's Deployment, and the ConfigMaps that it reads, out of Intents: the
	// operator does not write them before all of these are fixed. Unread is set when some of these problems exist only because the
	// user may not read the referenced objects; then it is not known what the operator does.
	Held   []render.Problem
	Unread bool
	// Enforced says which configuration the proxy keeps while there are any.
	Enforced string
	// HeldStatus are the fields of the MCPServer's status that others hold.
	HeldStatus []Contested
}

// Contested are all fields that others hold.
func (p *Plan) Contested() (all []Contested) {
	for i := range p.Intents {
		all = append(all, p.Intents[i].Contested...)
	}
	return append(all, p.HeldStatus...)
}

// New plans what every writer would do. The error is a *render.InvalidError when the MCPServer cannot be rendered; then
// nothing is written for it.
func New(in Input) (*Plan, error) {
	result, err := Render(in)
	if err != nil {
		return nil, err
	}
	p, err := NewPlanner(in, result)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Held: result.Held, Unread: in.References.Unread()}
	if len(result.Held) > 0 {
		plan.Enforced = writers.Enforced(p.proxyAnnotations())
	}
	if plan.HeldStatus, err = p.heldStatus(); err != nil {
		return nil, err
	}
	for _, absent := range result.Absent {
		if object := p.Ref(absent.Kind, absent.Name); in.Child(object) != nil && !p.Keeps(absent) {
			plan.Unwanted = append(plan.Unwanted, object)
		}
	}
	for i := range result.Intents {
		rendered := &result.Intents[i]
		if managers.CountsReplicas(rendered.Writer) {
			continue
		}
		intent := Intent{Writer: rendered.Writer, Object: p.Ref(rendered.Kind, rendered.Name)}
		intent.Live = in.Child(intent.Object)
		p.pinConfigs(rendered)
		if intent.Planned, err = p.Plan(rendered, intent.Live, nil); err != nil {
			return nil, err
		}
		intent.Contested = ContestedIn(intent.Planned)
		if intent.Live == nil && intent.Object.Kind == managers.Deployment && !p.backendReady() {
			intent.Waits = "it is made once the backend is ready"
		}
		switch {
		case intent.Live != nil && p.Stays(rendered):
			intent.Waits = "it stays as the proxy that runs needs it, until that is written"
		case rendered.IsOfProxy() && waitsForTurn(in.Server):
			intent.Waits = "it is written when the MCPServer's turn comes, see its condition " + v1beta1.ConditionApplied
		}
		plan.Intents = append(plan.Intents, intent)
	}
	for _, child := range []*inventory.Child{inventory.Backend, inventory.Proxy} {
		intent := Intent{Writer: child.Replicas, Object: child.Ref(in.Server.Namespace, in.Server.Name)}
		if intent.Live = in.Child(intent.Object); intent.Live == nil {
			continue
		}
		if intent.Planned, err = p.Scale(intent.Object, intent.Live, nil); err != nil {
			return nil, err
		}
		intent.Contested = ContestedIn(intent.Planned)
		if len(intent.Steps) > 0 || ownership.ApplyEntry(intent.Live, intent.Writer, "") != nil {
			plan.Intents = append(plan.Intents, intent)
		}
	}
	return plan, nil
}

// Render renders the intents for an MCPServer. The error is a *render.InvalidError.
func Render(in Input) (*render.Result, error) {
	rendering := render.Input{
		Server: in.Server, AuthzConfigMap: in.AuthzConfigMap, References: in.References, BackendProcess: in.Process,
	}
	proxy := in.Child(inventory.Proxy.Ref(in.Server.Namespace, in.Server.Name))
	if proxy != nil && in.Process == "" {
		attached, _, _ := unstructured.NestedString(proxy.Object, "spec", "template", "metadata", "annotations", v1beta1.AnnotationAttachedTo)
		rendering.BackendProcess = attached
	}
	var existing []render.Existing
	for _, live := range in.Children {
		config := &corev1.ConfigMap{}
		if live.GetKind() != managers.ConfigMap.Kind || runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, config) != nil {
			continue
		}
		child := inventory.Named(apply.NewObjectRef(managers.ConfigMap, in.Server.Namespace, config.Name), in.Server.Name)
		usable := child != nil && child.ByContent && child.ContentName(in.Server.Name, config.Data) == config.Name && len(config.BinaryData) == 0
		existing = append(existing, render.Existing{Name: config.Name, UID: config.UID, Usable: usable, Salt: config.Data[render.SaltKey]})
	}
	result, _, err := render.Aside(rendering.Bounded(in.Options), in.Options, configMapsOf(proxy), existing)
	return result, err
}

// configMapsOf returns the ConfigMaps that a proxy's template names.
func configMapsOf(proxy *unstructured.Unstructured) []string {
	template := TemplateOf(proxy)
	if template == nil {
		return nil
	}
	return workload.ConfigMapsOf(&template.Spec)
}

// TemplateOf returns that of the pods of a workload; nil when there is none.
func TemplateOf(live *unstructured.Unstructured) *corev1.PodTemplateSpec {
	if live == nil {
		return nil
	}
	content, _, _ := unstructured.NestedMap(live.Object, "spec", "template")
	template := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, template); err != nil {
		return nil // An API server sends none such.
	}
	return template
}

// Planner plans what the operator's writers do for an MCPServer.
type Planner struct {
	Input
	result  *render.Result
	writers writers.Set
	yield   *request.Request
}

// NewPlanner returns a planner for the MCPServer of an input, of which the result was rendered.
func NewPlanner(in Input, result *render.Result) (*Planner, error) {
	all, err := writers.Planners()
	return &Planner{Input: in, result: result, writers: all, yield: request.New(in.Server.Annotations[v1beta1.AnnotationYield])}, err
}

// Ref names an object in the namespace of the MCPServer.
func (p *Planner) Ref(kind schema.GroupKind, name string) apply.ObjectRef {
	return apply.NewObjectRef(kind, p.Server.Namespace, name)
}

// Plan plans an intent on an object, which is nil where there is none. Complete, if set, asks for more than the MCPServer does.
func (p *Planner) Plan(intent *render.Intent, live *unstructured.Unstructured, complete func(*apply.Request)) (*apply.Planned, error) {
	req := apply.Request{Object: p.Ref(intent.Kind, intent.Name), Config: intent.Config, Ownership: apply.Ownership{Unset: intent.Unset}, Preserve: intent.Preserve()}
	var object metav1.Object
	if live != nil {
		object, req.Live = live, live
	}
	req.Yield = p.yield.Yields(req.Object, request.Shared(intent.Writer, object, intent.Config))
	if complete != nil {
		complete(&req)
	}
	// What the API server has answered with is no older than what a child records.
	req.Source = apply.Source{
		UID: p.Server.UID, Generation: p.Server.Generation, References: writers.References(intent.Child, p.result.References),
	}
	req.SourceCurrent, req.ReferencesCurrent = true, true
	writer, ok := p.writers[writers.Key{Manager: intent.Writer, Kind: intent.Kind}]
	if !ok {
		return nil, errors.New("there is no writer " + intent.Writer)
	}
	return apply.Plan(writer, req)
}

// Scale plans the number of replicas of an existing workload.
func (p *Planner) Scale(
	object apply.ObjectRef, live *unstructured.Unstructured, complete func(*apply.Request),
) (*apply.Planned, error) {
	writer := inventory.Of(object.Kind).Replicas
	number, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if !found {
		number = 1 // the API server's default
	}
	ours := slices.ContainsFunc(ownership.Owners(live, render.ReplicasPath), func(o ownership.Owner) bool { return managers.IsNamed(writer, o.Manager) && o.Applies(o.Manager, "") })
	scale := p.result.Scale(writer, object.Kind, object.Name, object.Namespace, int32(number), ours)
	intent := &render.Intent{Writer: writer, Kind: object.Kind, Name: object.Name, Config: scale.Config}
	return p.Plan(intent, live, func(req *apply.Request) {
		if complete != nil {
			complete(req)
		}
		if scale.Capped {
			req.Yield = nil
			req.Take = func(_ ownership.Owner, path fieldpath.Path) bool { return render.IsReplicas(path) }
		}
		if scale.Released {
			req.Yield = render.IsReplicas
		}
	})
}

// waitsForTurn reports whether the operator has said that the proxy waits for its turn to be replaced.
func waitsForTurn(server *v1beta1.MCPServer) bool {
	applied := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionApplied)
	return applied != nil && applied.Reason == v1beta1.ReasonWaitingForTurn
}

// Stays reports whether an intent is not written to an existing object, because the proxy stays as it is and would not find the
// object any more.
func (p *Planner) Stays(intent *render.Intent) bool {
	endpoint := func(child *inventory.Child) *workload.Endpoint {
		template := p.template(child)
		if template == nil {
			return nil
		}
		return new(workload.EndpointOf(template))
	}
	return p.proxyStays() && intent.MovesWithProxy() && render.EndpointMoves(p.Server, endpoint(inventory.Proxy), endpoint(inventory.Backend))
}

// Keeps reports whether an object that the MCPServer does not ask for any more is not deleted, because a proxy that stays as it is
// uses it.
func (p *Planner) Keeps(absent render.ObjectRef) bool {
	return p.proxyStays() && absent.Kind == managers.ServiceKind
}

// proxyStays reports whether the proxy stays as it is: references hold it back, or it waits for its turn to be replaced.
func (p *Planner) proxyStays() bool { return len(p.result.Held) > 0 || waitsForTurn(p.Server) }

// template returns that of the pods of a workload as it is; nil when there is none.
func (p *Planner) template(child *inventory.Child) *corev1.PodTemplateSpec {
	return TemplateOf(p.Child(child.Ref(p.Server.Namespace, p.Server.Name)))
}

// proxyAnnotations returns those of the proxy's Deployment, if it exists.
func (p *Planner) proxyAnnotations() (annotations map[string]string, exists bool) {
	live := p.Child(inventory.Proxy.Ref(p.Server.Namespace, p.Server.Name))
	if live == nil {
		return nil, false
	}
	return live.GetAnnotations(), true
}

func (p *Planner) backendReady() bool {
	backend := p.Child(inventory.Backend.Ref(p.Server.Namespace, p.Server.Name))
	if backend == nil {
		return false
	}
	ready, _, _ := unstructured.NestedInt64(backend.Object, "status", "readyReplicas")
	return ready > 0
}

// pinConfigs completes the intent for the proxy's Deployment by the UIDs of the ConfigMaps that it depends on. Where one is hidden, the
// Deployment keeps those that it has.
func (p *Planner) pinConfigs(intent *render.Intent) {
	hidden := func(dependency render.ObjectRef) bool {
		return dependency.Kind == managers.ConfigMap && p.Hides != nil && p.Hides(p.Ref(dependency.Kind, dependency.Name))
	}
	if !slices.ContainsFunc(intent.DependsOn, hidden) {
		render.PinConfigs(*intent, p.configUID)
		return
	}
	if live := p.template(inventory.Proxy); live != nil {
		render.KeepPins(*intent, live.Annotations)
	}
}

// configUID returns the UID of a ConfigMap of the MCPServer's as it is; empty when there is none.
func (p *Planner) configUID(name string) types.UID {
	if live := p.Child(p.Ref(managers.ConfigMap, name)); live != nil {
		return live.GetUID()
	}
	return ""
}
