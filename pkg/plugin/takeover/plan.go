// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/runconfig"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Standing says which operator an MCPServer belongs to.
type Standing string

// The operators that an MCPServer may belong to.
const (
	// OfToolHive is one that is to be taken over, or whose takeover has begun.
	OfToolHive Standing = "ToolHive"
	// OfFreehold is one of which nothing is left to take over.
	OfFreehold Standing = "Freehold"
	// OfNobody is one for which nothing was made yet.
	OfNobody Standing = "Nobody"
)

// StandingOf returns which operator an MCPServer belongs to, from itself and its children.
func StandingOf(server metav1.Object, children []*unstructured.Unstructured) Standing {
	ours := managers.Owns(server, managers.Finalizer, "")
	for _, child := range children {
		ref := takeover.RefOf(child)
		if takeover.Untaken(ref, child) {
			return OfToolHive
		}
		ours = ours || managers.Owns(child, takeover.MainWriter(ref), "")
	}
	switch {
	case ours:
		return OfFreehold
	case takeover.Held(server, ""):
		return OfToolHive
	}
	return OfNobody
}

// Unknown stands for the process of the backend that a proxy is to be attached to, where that does not run yet.
const Unknown = "(the backend's new process)"

// Object says what happens to one object of an MCPServer.
type Object struct {
	Ref apply.ObjectRef
	// Live is the object as it is; nil when there is none.
	Live *unstructured.Unstructured
	// Predecessor is ToolHive's object that this one replaces under another name; nil for none.
	Predecessor *unstructured.Unstructured
	// Merged is the object as it would be, before the API server fills defaults in; nil when it is deleted.
	Merged *unstructured.Unstructured
	// When it is written.
	When takeover.Moment
	// Contested are the fields that managers other than ToolHive's own at another value. While there are any that the
	// MCPServer does not ask to take, nothing of the object is written; Merged is the result if all are taken.
	Contested []desired.Contested
	// Free are fields that have no owner afterwards, and that keep their values.
	Free []string
}

// Plan is what a takeover would change.
type Plan struct {
	// Objects in the order in which they are written.
	Objects []Object
	// GateClosed is set when the gate on the backend's pods, as it is, keeps the operator's proxyrunners from writing.
	GateClosed bool
	// Notices are what the operator would report about the spec, and what a takeover changes in how the proxy behaves.
	Notices []render.Problem
	// Held are the problems with references that keep the proxy of a takeover that was begun, and the objects that it reads, out of Objects.
	Held []render.Problem
}

// New computes what a takeover would change. The error is a *render.InvalidError when the operator would leave the
// MCPServer as it is.
func New(in desired.Input) (*Plan, error) {
	set := in.Child(inventory.Backend.Ref(in.Server.Namespace, in.Server.Name))
	plan := &Plan{GateClosed: set == nil}
	if set != nil {
		annotations, _, _ := unstructured.NestedStringMap(set.Object, "spec", "template", "metadata", "annotations")
		plan.GateClosed = takeover.Closed(takeover.Gate(annotations[v1beta1.AnnotationGeneration]))
	}
	if !plan.GateClosed || in.Process == "" {
		in.Process = Unknown
	}
	result, err := desired.Render(in)
	if err != nil {
		return nil, err
	}
	if len(result.Held) > 0 && !takeover.Begun(in.Server) {
		return nil, &render.InvalidError{Problems: result.Held}
	}
	planner, err := desired.NewPlanner(in, result)
	if err != nil {
		return nil, err
	}
	plan.Notices, plan.Held = result.Notices, result.Held
	for i := range result.Intents {
		intent := &result.Intents[i]
		if managers.CountsReplicas(intent.Writer) {
			continue
		}
		object := Object{Ref: planner.Ref(intent.Kind, intent.Name), When: takeover.MomentOf(intent.Child, plan.GateClosed)}
		if object.Live = in.Child(object.Ref); object.Live == nil {
			object.Predecessor = in.Child(planner.Ref(object.Ref.Kind, intent.Child.Name(in.Server.Name)))
			if object.Ref.Kind == managers.Deployment {
				object.When = WhenBackendReady
			}
		} else if planner.Stays(intent) {
			object.When = WhenProxyWritten
		}
		if err := object.plan(planner, intent, result); err != nil {
			return nil, err
		}
		plan.Objects = append(plan.Objects, object)
	}
	for _, absent := range result.Absent {
		ref := planner.Ref(absent.Kind, absent.Name)
		if live := in.Child(ref); live != nil && !planner.Keeps(absent) {
			plan.Objects = append(plan.Objects, Object{Ref: ref, Live: live, When: takeover.AtOnce})
		}
	}
	for _, child := range inventory.Children() {
		ref := child.Ref(in.Server.Namespace, in.Server.Name)
		if live := in.Child(ref); child.ByContent && live != nil {
			plan.Objects = append(plan.Objects, Object{Ref: ref, Live: live, When: WhenUnused})
		}
	}
	slices.SortStableFunc(plan.Objects, func(a, b Object) int { return slices.Index(moments, a.When) - slices.Index(moments, b.When) })
	plan.foretell(in, result)
	return plan, nil
}

// plan plans the writes of an object's writers: first the one that inherits ToolHive's claims, then that of replicas.
func (o *Object) plan(planner *desired.Planner, intent *render.Intent, result *render.Result) error {
	err := o.step(func(taken bool) (*apply.Planned, error) {
		return planner.Plan(intent, o.Live, func(req *apply.Request) {
			if o.Live != nil && takeover.Untaken(o.Ref, o.Live) {
				req.Inherit = &apply.Inheritance{From: takeover.FromToolHive, Heirs: heirs(o.Ref, intent.Child.Replicas, result)}
			}
			o.take(req, taken)
		})
	})
	if err != nil || o.Live == nil || intent.Child.Replicas == "" {
		return err
	}
	err = o.step(func(taken bool) (*apply.Planned, error) {
		return planner.Scale(o.Ref, o.Merged, func(req *apply.Request) { o.take(req, taken) })
	})
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	if free := replicas.String(); owned(o.Live, free) && !owned(o.Merged, free) && !slices.Contains(o.Free, free) {
		o.Free = append(o.Free, free)
	}
	return err
}

func owned(object *unstructured.Unstructured, path string) bool {
	return len(ownership.Owners(object, path)) > 0
}

// heirs returns the writers that inherit ToolHive's claims. The writer of replicas is one where it has a number to write; else the
// number stays, without an owner.
func heirs(ref apply.ObjectRef, replicas string, result *render.Result) []ownership.Heir {
	if render.WantedReplicas(result.Intents, replicas) == nil {
		replicas = ""
	}
	return takeover.Heirs(managers.Registry().Writers(), ref, replicas)
}

// take has a request take what is contested, once that has been recorded.
func (o *Object) take(req *apply.Request, taken bool) {
	if taken {
		req.Take = func(ownership.Owner, fieldpath.Path) bool { return true }
	}
}

// step records what one writer does: the contested fields, and the result if they are taken.
func (o *Object) step(plan func(taken bool) (*apply.Planned, error)) error {
	planned, err := plan(false)
	if err != nil {
		return err
	}
	if o.Contested = append(o.Contested, desired.ContestedIn(planned)...); len(planned.Contested()) > 0 {
		if planned, err = plan(true); err != nil {
			return err
		}
	}
	o.Free = append(o.Free, planned.Moved(apply.CauseYielded)...)
	o.Merged = planned.After
	return nil
}

// Taken reports whether the MCPServer asks for a contested field to be taken.
func Taken(c desired.Contested, requests []request.Selector) bool {
	return len(c.Owners) > 0 && slices.ContainsFunc(requests, func(s request.Selector) bool {
		return !slices.ContainsFunc(c.Owners, func(owner ownership.Owner) bool { return !s.Owned(c.Object, c.Location, owner) })
	})
}

// Moments at which the operator writes an object, besides those at which it takes one over.
const (
	WhenBackendReady takeover.Moment = "once the backend is ready"
	WhenUnused       takeover.Moment = "once no pod and no ReplicaSet uses it"
	WhenProxyWritten takeover.Moment = "once the proxy is written, which needs it as it is"
)

// moments in their order.
var moments = []takeover.Moment{
	takeover.AtOnce, WhenBackendReady, takeover.AfterBackend, takeover.AfterProxies, takeover.AfterRole, WhenProxyWritten, WhenUnused,
}

// NoticeUsageMetricsBegin is the reason of the notice that a proxy begins to report usage metrics. No condition has it.
const NoticeUsageMetricsBegin = "UsageMetricsBegin"

// foretell adds notices of what the new proxy does otherwise than the present one, though the spec is the same.
func (p *Plan) foretell(in desired.Input, result *render.Result) {
	i := slices.IndexFunc(p.Objects, func(o Object) bool { return o.Ref == inventory.Proxy.Ref(in.Server.Namespace, in.Server.Name) })
	if i < 0 {
		return
	}
	before, after := desired.TemplateOf(p.Objects[i].Live), desired.TemplateOf(p.Objects[i].Merged)
	if before == nil || after == nil {
		return
	}
	if result.SharedSessions && render.LosesSessions([]*workload.Pod{workload.PodOf(&corev1.Pod{Spec: before.Spec})}, in.Options) {
		p.Notices = append(p.Notices, render.Problem{
			Condition: v1beta1.ConditionSessionStorageWarning, Reason: v1beta1.ReasonSessionsNotKept,
			Message: "The proxyrunner that takes over does not serve the sessions which those before v0.58.0 have begun in Redis; " +
				"clients have to begin new ones.",
		})
	}
	if keepsUsageToItself(in) && !setsUsageMetrics(after) {
		p.Notices = append(p.Notices, render.Problem{
			Reason: NoticeUsageMetricsBegin,
			Message: fmt.Sprintf("ToolHive's operator keeps this proxy from reporting usage metrics to Stacklok; with Freehold it begins to. Start "+
				"Freehold with --usage-metrics=false, or set %s=false in resourceOverrides.proxyDeployment.env.", render.EnvUsageMetrics),
		})
	}
}

// keepsUsageToItself reports whether ToolHive's operator turned usage metrics off: its proxies do what their RunConfig lists, and the
// middleware that reports is not in the list.
func keepsUsageToItself(in desired.Input) bool {
	live := in.Child(inventory.RunConfig.Ref(in.Server.Namespace, in.Server.Name))
	if live == nil {
		return false
	}
	text, _, _ := unstructured.NestedString(live.Object, "data", runconfig.Key)
	var document struct {
		Middlewares []struct {
			Type string `json:"type"`
		} `json:"middleware_configs"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Middlewares) == 0 {
		return false // The proxyrunner makes the list itself, from its own environment, then and afterwards.
	}
	for _, middleware := range document.Middlewares {
		if middleware.Type == "usagemetrics" {
			return false
		}
	}
	return true
}

func setsUsageMetrics(pod *corev1.PodTemplateSpec) bool {
	for i := range pod.Spec.Containers {
		if slices.ContainsFunc(pod.Spec.Containers[i].Env, func(v corev1.EnvVar) bool { return v.Name == render.EnvUsageMetrics }) {
			return true
		}
	}
	return false
}
