// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
)

// Input is everything that is to be known of an MCPServer.
type Input struct {
	// Server is the MCPServer.
	Server *v1beta1.MCPServer
	// Child returns a child as it is; nil when it does not exist, or is not known.
	Child func(ref apply.ObjectRef) *unstructured.Unstructured
	// AuthzConfigMap and PermissionProfileConfigMap are those that the MCPServer refers to; nil for none.
	AuthzConfigMap, PermissionProfileConfigMap *corev1.ConfigMap
	// Options of the operator.
	Options render.Options
	// Process is what the runner of a proxy with transport stdio is to be attached to; empty for the one that the proxy's
	// Deployment names.
	Process string
	// Schema tells the types of fields.
	Schema managedfields.TypeConverter
}

// Intent is what one writer wants of one object.
type Intent struct {
	// Writer is the field manager.
	Writer string
	// Object that it writes.
	Object apply.ObjectRef
	// Live is the object as it is; nil when it does not exist.
	Live *unstructured.Unstructured
	// Want is what would be applied, without preconditions. Nil when there is nothing to apply.
	Want map[string]any
	// Trial is what to apply in a dry run to see what becomes of the object: Want, and the released fields as they are.
	// The operator gives up its claim on those first, which a dry run cannot do; to leave them out would remove them.
	Trial map[string]any
	// Same tells that the object is so, and that there is nothing to apply.
	Same bool
	// Waits tells why it is not written yet; empty when nothing is in the way.
	Waits string
	// Foreign tells that the object is a ConfigMap whose data is not what its name stands for. The operator does not use it.
	Foreign bool
	// Contested are the fields that others hold at another value. While there are any, nothing is written.
	Contested []Contested
	// Released are fields that the writer would give up, at their present values.
	Released []string
	// Removed are fields that nobody owns and that have to go. The operator claims them first, which a dry run cannot do.
	Removed []string
	// After is what would become of the object then, as far as it can be told without the API server; nil when nothing has
	// to be removed that way, so that Trial tells.
	After *unstructured.Unstructured
}

// Contested is a field that the operator wants to have another value than somebody else has given it.
type Contested struct {
	// Path of the field.
	Path string
	// Location is the same as a path.
	Location fieldpath.Path
	// Owners that hold it, all but the writer.
	Owners []ownership.Owner
	// Theirs is the present value, nil for none; Ours the one that the writer wants.
	Theirs, Ours any
}

// Plan is what the operator would do for an MCPServer.
type Plan struct {
	// Intents of all writers, in the order in which they are written.
	Intents []Intent
	// Unwanted are children that exist and that the MCPServer does not ask for any more. They are deleted.
	Unwanted []apply.ObjectRef
}

// New works out what every writer wants. The error is a *render.InvalidError when the MCPServer cannot be rendered; then
// nothing is written for it.
func New(in Input) (*Plan, error) {
	key := ref(managers.Deployment, in.Server, inventory.Proxy.Name(in.Server.Name))
	result, err := Render(in)
	if err != nil {
		return nil, err
	}
	w := &worker{Input: in, yield: request.Read(in.Server.Annotations[v1beta1.AnnotationYield])}
	plan := &Plan{}
	for _, absent := range result.Absent {
		if object := ref(absent.Kind, in.Server, absent.Name); in.Child(object) != nil {
			plan.Unwanted = append(plan.Unwanted, object)
		}
	}
	for _, rendered := range result.Intents {
		if managers.CountsReplicas(rendered.Writer) {
			continue
		}
		object := ref(rendered.Kind, in.Server, rendered.Name)
		render.PinConfigs(rendered, w.configUID)
		intent, err := w.intent(rendered.Writer, object, rendered.Config, rendered.Unset...)
		if err != nil {
			return nil, err
		}
		if object == key && intent.Live == nil && !w.backendReady() {
			intent.Waits = "it is made once the backend is ready"
		}
		plan.Intents = append(plan.Intents, intent)
	}
	for _, tier := range []struct {
		writer string
		object apply.ObjectRef
	}{
		{managers.BackendReplicas, ref(managers.StatefulSet, in.Server, inventory.Backend.Name(in.Server.Name))},
		{managers.ProxyReplicas, key},
	} {
		intent, err := w.replicas(tier.writer, tier.object, result)
		if err != nil {
			return nil, err
		}
		if intent != nil {
			plan.Intents = append(plan.Intents, *intent)
		}
	}
	return plan, nil
}

// configUID is the UID of a ConfigMap of the MCPServer's as it is; empty when there is none.
func (w *worker) configUID(name string) types.UID {
	if live := w.Child(ref(managers.ConfigMap, w.Server, name)); live != nil {
		return live.GetUID()
	}
	return ""
}

// Render renders what there is to be for an MCPServer. The error is a *render.InvalidError.
func Render(in Input) (*render.Result, error) {
	rendering := render.Input{
		Server: in.Server, AuthzConfigMap: in.AuthzConfigMap, PermissionProfileConfigMap: in.PermissionProfileConfigMap,
		BackendProcess: in.Process,
	}
	proxy := in.Child(ref(managers.Deployment, in.Server, inventory.Proxy.Name(in.Server.Name)))
	if proxy != nil && in.Process == "" {
		attached, _, _ := unstructured.NestedString(proxy.Object, "spec", "template", "metadata", "annotations", v1beta1.AnnotationAttachedTo)
		rendering.BackendProcess = attached
	}
	return render.Render(rendering, in.Options)
}

func ref(kind schemaGroupKind, server *v1beta1.MCPServer, name string) apply.ObjectRef {
	r := apply.ObjectRef{Kind: kind}
	r.Namespace, r.Name = server.Namespace, name
	return r
}

// worker works out intents.
type worker struct {
	Input
	yield []request.Selector
}

func (w *worker) backendReady() bool {
	backend := w.Child(ref(managers.StatefulSet, w.Server, inventory.Backend.Name(w.Server.Name)))
	if backend == nil {
		return false
	}
	ready, _, _ := unstructured.NestedInt64(backend.Object, "status", "readyReplicas")
	return ready > 0
}

// replicas works out what is wanted of a workload's number of pods, see DESIGN of the operator: what the spec says; one
// at most where there may be no more; and otherwise that it be nobody's.
func (w *worker) replicas(writer string, object apply.ObjectRef, result *render.Result) (*Intent, error) {
	live := w.Child(object)
	if live == nil {
		return nil, nil
	}
	number, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if !found {
		number = 1 // the API server's default
	}
	i := slices.IndexFunc(result.Intents, func(i render.Intent) bool { return i.Writer == writer })
	switch {
	case result.SinglePod && number > 1:
		capped, _ := result.Capped(writer, object.Kind, object.Name, object.Namespace)
		intent, err := w.intent(writer, object, capped)
		// The operator takes this field without being asked.
		intent.Contested = nil
		return &intent, err
	case i >= 0:
		intent, err := w.intent(writer, object, result.Intents[i].Config)
		return &intent, err
	case result.SinglePod || !slices.ContainsFunc(ownership.Owners(live, replicasPath), func(o ownership.Owner) bool { return o.Applies(writer, "") }):
		return nil, nil
	default:
		return &Intent{Writer: writer, Object: object, Live: live, Released: []string{replicasPath}}, nil
	}
}

const replicasPath = ".spec.replicas"

// intent works out what becomes of a rendered configuration, and of the fields that are to go.
func (w *worker) intent(writer string, object apply.ObjectRef, config runtime.ApplyConfiguration, unset ...string) (Intent, error) {
	intent := Intent{Writer: writer, Object: object, Live: w.Child(object)}
	yields, given := Yields(object, w.yield), &fieldpath.Set{}
	if intent.Live != nil {
		yields = Leaves(writer, object, intent.Live, config, w.yield)
		left, err := Leave(w.Schema, intent.Live, writer, config, yields)
		if err != nil {
			return intent, fmt.Errorf("what %s leaves of %s cannot be told: %w", writer, object, err)
		}
		config, given = left.Config, left.Fields
		Settle(writer, left.Object, config)
	}
	want, err := Encode(config)
	if err != nil {
		return intent, fmt.Errorf("what %s wants of %s cannot be encoded: %w", writer, object, err)
	}
	intent.Want = want
	if intent.Live != nil && object.Kind == managers.ConfigMap {
		var live corev1.ConfigMap
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(intent.Live.Object, &live)
		if intent.Foreign = err == nil && !render.HoldsWhatItsNameTells(config, &live); intent.Foreign {
			return intent, nil
		}
	}
	if intent.Live == nil {
		Stamp(intent.Want, writer, w.Server)
		intent.Trial = intent.Want
		return intent, nil
	}
	if err := w.compare(&intent, given, yields, unset); err != nil {
		return intent, fmt.Errorf("what %s wants of %s cannot be compared: %w", writer, object, err)
	}
	return intent, nil
}

// Stamp adds the annotation that tells what the object is written from to what a writer wants of it.
func Stamp(want map[string]any, writer string, server *v1beta1.MCPServer) {
	// Maps all the way down: the object was decoded from JSON.
	_ = unstructured.SetNestedField(want, sourceOf(server).String(), "metadata", "annotations", sourceKey(writer))
}

func sourceOf(server *v1beta1.MCPServer) apply.Source {
	return apply.Source{UID: server.UID, Generation: server.Generation}
}

// sourceKey is the annotation by which a writer tells of the source.
func sourceKey(writer string) string {
	if managers.CountsReplicas(writer) {
		return v1beta1.AnnotationReplicasSource
	}
	return v1beta1.AnnotationSource
}

// Encode returns a configuration as it is sent.
func Encode(config any) (map[string]any, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	err = utiljson.Unmarshal(text, &object)
	return object, err
}
