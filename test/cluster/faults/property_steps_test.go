// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/test/harness"
)

// act is something that an actor does in a scenario.
type act string

// What others do to the objects of an MCPServer, each under a name of his own.
const (
	// actSet changes a field as kubectl edit does, and actRemove takes it away.
	actSet    act = "set"
	actRemove act = "remove"
	// actApply applies a field without force, actForce with it; actShare applies the value that is there already.
	actApply act = "apply"
	actForce act = "force"
	actShare act = "share"
	// actGiveUp applies nothing, so that all that was applied before is given up.
	actGiveUp act = "give up"
	// actMake applies a field whether the object exists or not. It is for scenarios that are written down: an object that it
	// makes is another client's, and stays so until it is deleted.
	actMake act = "make"
	// actScale writes the scale subresource.
	actScale act = "scale"
	// actReset takes all managedFields away.
	actReset act = "reset"
	// actDelete deletes the object.
	actDelete act = "delete"
)

// What the author does to the MCPServer.
const (
	actImage     act = "image"
	actVariable  act = "variable"
	actReplicas  act = "replicas"
	actBackends  act = "backend replicas"
	actPort      act = "port"
	actTransport act = "transport"
	actYield     act = "yield"
	actTake      act = "take"
	actSettle    act = "neither yield nor take"
)

// scenarioStep is one step of a scenario. It is plain data, so that a scenario can be drawn, shrunk, and written down.
type scenarioStep struct {
	Do act
	// Field is the name of a field, of fields, that the step is about.
	Field string
	// By is the field manager.
	By string
	// Which is the one of the values that there are to choose from, counted from 0.
	Which int
	// Wait says that the next step comes only after the operator has answered to this one.
	Wait bool
}

// disputed is a field that others write.
type disputed struct {
	component harness.Component
	path      fieldpath.Path
	values    []any
	// foreign tells that Freehold does not set the field.
	foreign bool
}

// selector is the entry for the field in an annotation that asks to take it, or to leave it to others.
func (d disputed) selector(server string) string {
	form := harness.FormOf(d.component)
	return objectName(form, server) + ":" + d.path.String()
}

// objectName is the name of an object as kubectl takes it.
func objectName(form harness.Form, server string) string {
	kind := form.Resource.Resource[:len(form.Resource.Resource)-1]
	if form.Resource.Group != "" {
		kind += "." + form.Resource.Group
	}
	return kind + "/" + form.Name(server)
}

// inContainer is the path of a field of a container.
func inContainer(name string, below ...any) fieldpath.Path {
	return fieldmanager.Path(append([]any{"spec", "template", "spec", "containers", fieldpath.KeyByFields("name", name)}, below...)...)
}

// scenarioFields are what others write: fields of each kind of object, and such that Freehold knows nothing of.
var scenarioFields = map[string]disputed{
	"proxy image":      {component: harness.Proxy, path: inContainer("toolhive", "image"), values: []any{"example.com/other:1", "example.com/other:2"}},
	"proxy variable":   {component: harness.Proxy, path: inContainer("toolhive", "env", fieldpath.KeyByFields("name", "HOME"), "value"), values: []any{"/a", "/b"}},
	"proxy grace":      {component: harness.Proxy, path: fieldmanager.Path("spec", "template", "spec", "terminationGracePeriodSeconds"), values: []any{int64(10), int64(60)}},
	"proxy label":      {component: harness.Proxy, path: fieldmanager.Path("metadata", "labels", "toolhive"), values: []any{"theirs", "others"}},
	"proxy replicas":   {component: harness.Proxy, path: fieldmanager.Path("spec", "replicas"), values: []any{int64(1), int64(2), int64(3)}},
	"backend image":    {component: harness.Backend, path: inContainer("mcp", "image"), values: []any{"example.com/mcp:2", "example.com/other:1"}},
	"backend variable": {component: harness.Backend, path: inContainer("mcp", "env", fieldpath.KeyByFields("name", "MCP_TRANSPORT"), "value"), values: []any{"stdio", "other"}},
	"backend label":    {component: harness.Backend, path: fieldmanager.Path("metadata", "labels", "toolhive-basename"), values: []any{"theirs", "others"}},
	"backend replicas": {component: harness.Backend, path: fieldmanager.Path("spec", "replicas"), values: []any{int64(1), int64(2), int64(3)}},
	"affinity":         {component: harness.ProxyService, path: fieldmanager.Path("spec", "sessionAffinity"), values: []any{"None", "ClientIP"}},
	"selector":         {component: harness.BackendService, path: fieldmanager.Path("spec", "selector"), values: []any{map[string]any{"zone": "a"}}},
	"rules":            {component: harness.ProxyRole, path: fieldmanager.Path("rules"), values: []any{[]any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}}},

	"label of a Deployment":     {component: harness.Proxy, path: fieldmanager.Path("metadata", "labels", harness.ForeignKey), values: []any{"a", "b"}, foreign: true},
	"variable of a Deployment":  {component: harness.Proxy, path: inContainer("toolhive", "env", fieldpath.KeyByFields("name", "FOREIGN"), "value"), values: []any{"a", "b"}, foreign: true},
	"sidecar":                   {component: harness.Backend, path: inContainer("sidecar", "image"), values: []any{"example.com/sidecar:1", "example.com/sidecar:2"}, foreign: true},
	"annotation of a Service":   {component: harness.ProxyService, path: fieldmanager.Path("metadata", "annotations", harness.ForeignKey), values: []any{"a", "b"}, foreign: true},
	"label of a ServiceAccount": {component: harness.ProxyAccount, path: fieldmanager.Path("metadata", "labels", harness.ForeignKey), values: []any{"a", "b"}, foreign: true},
	"label of a RoleBinding":    {component: harness.ProxyBinding, path: fieldmanager.Path("metadata", "labels", harness.ForeignKey), values: []any{"a", "b"}, foreign: true},
}

// scenarioAppliers are others that know server-side apply, and scenarioScalers write the scale subresource.
var (
	scenarioAppliers = []string{harness.Team, "argocd-controller"}
	scenarioScalers  = []string{"kubectl", "kube-controller-manager"}
)

var scenarioTransports = []v1beta1.Transport{v1beta1.TransportStreamableHTTP, v1beta1.TransportStdio, v1beta1.TransportSSE}

// perform does what the step says. What the API server refuses, such as an apply without force of what belongs to
// somebody else, is nothing that was done.
func (s *scenario) perform(ctx context.Context, step scenarioStep) error {
	var err error
	if field, ok := scenarioFields[step.Field]; ok && step.Do != actYield && step.Do != actTake {
		err = s.byOthers(ctx, step, field)
	} else {
		err = s.byAuthor(ctx, step)
	}
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (s *scenario) byOthers(ctx context.Context, step scenarioStep, field disputed) error {
	value := field.values[step.Which%len(field.values)]
	switch step.Do {
	case actMake:
		_, err := s.ns.Apply(ctx, step.By, field.component, s.name, false, bodyNaming(field.path, value))
		return err
	case actScale:
		return s.scale(ctx, step.By, field.component, int32(1+step.Which))
	case actReset:
		_, err := s.ns.Patch(ctx, harness.Hand, field.component, s.name, harness.Replace("/metadata/managedFields", []any{map[string]any{}}))
		return err
	case actDelete:
		return s.ns.Objects(field.component).Delete(ctx, harness.FormOf(field.component).Name(s.name), metav1.DeleteOptions{})
	}
	live, err := s.ns.Object(ctx, field.component, s.name)
	if err != nil {
		return err
	}
	at, found := locateField(live.Object, field.path)
	apply := func(force bool, body map[string]any) error {
		// The UID keeps the apply from making an object that has gone since.
		if err := unstructured.SetNestedField(body, string(live.GetUID()), "metadata", "uid"); err != nil {
			return err
		}
		_, err := s.ns.Apply(ctx, step.By, field.component, s.name, force, body)
		return err
	}
	switch {
	case step.Do == actApply, step.Do == actForce:
		err = apply(step.Do == actForce, bodyNaming(field.path, value))
	case step.Do == actGiveUp:
		err = apply(false, map[string]any{})
	case step.Do == actSet:
		_, err = s.ns.Patch(ctx, step.By, field.component, s.name, at.set(value)...)
	case !found:
	case step.Do == actRemove:
		_, err = s.ns.Patch(ctx, step.By, field.component, s.name, harness.Remove(at.pointer))
	case step.Do == actShare:
		err = apply(false, bodyNaming(field.path, at.value))
	default:
		return fmt.Errorf("nobody can %q a field", step.Do)
	}
	return err
}

func (s *scenario) scale(ctx context.Context, by string, component harness.Component, number int32) error {
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.ns.Name},
		Spec:       autoscalingv1.ScaleSpec{Replicas: number},
	}
	options := metav1.UpdateOptions{FieldManager: by}
	workloads := s.ns.Core.AppsV1()
	var err error
	if component == harness.Backend {
		_, err = workloads.StatefulSets(s.ns.Name).UpdateScale(ctx, s.name, scale, options)
	} else {
		_, err = workloads.Deployments(s.ns.Name).UpdateScale(ctx, s.name, scale, options)
	}
	return err
}

// byAuthor edits the MCPServer.
func (s *scenario) byAuthor(ctx context.Context, step scenarioStep) error {
	number := func() *int32 {
		if step.Which == 0 {
			return nil
		}
		n := int32(step.Which)
		return &n
	}
	return s.edit(ctx, func(server *v1beta1.MCPServer) {
		spec := &server.Spec
		switch step.Do {
		case actImage:
			spec.Image = fmt.Sprintf("example.com/mcp:%d", 1+step.Which)
		case actVariable:
			spec.Env = slices.DeleteFunc(spec.Env, func(e v1beta1.EnvVar) bool { return e.Name == "MODE" })
			if step.Which > 0 {
				spec.Env = append(spec.Env, v1beta1.EnvVar{Name: "MODE", Value: fmt.Sprint(step.Which)})
			}
		case actReplicas:
			spec.Replicas = number()
		case actBackends:
			spec.BackendReplicas = number()
		case actPort:
			spec.ProxyPort = int32(8080 + step.Which)
		case actTransport:
			spec.Transport, spec.MCPPort = scenarioTransports[step.Which], 0
			if spec.Transport != v1beta1.TransportStdio {
				spec.MCPPort = 9000
			}
		case actYield, actTake:
			key, value := v1beta1.AnnotationYield, step.By
			if step.Do == actTake {
				key = v1beta1.AnnotationTake
			}
			if value == "" {
				value = scenarioFields[step.Field].selector(s.name)
			}
			metav1.SetMetaDataAnnotation(&server.ObjectMeta, key, value)
			if step.Do == actTake {
				s.takes = append(s.takes, value)
			}
		case actSettle:
			delete(server.Annotations, v1beta1.AnnotationYield)
			delete(server.Annotations, v1beta1.AnnotationTake)
		}
	})
}

// edit changes the MCPServer as kubectl edit does.
func (s *scenario) edit(ctx context.Context, change harness.Change) error {
	for {
		server, err := s.ns.Servers.Get(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(server)
		_, err = s.ns.Servers.Update(ctx, server, metav1.UpdateOptions{FieldManager: harness.Author})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// bodyNaming are the fields of an apply that names one field.
func bodyNaming(path fieldpath.Path, value any) map[string]any {
	for _, element := range slices.Backward(path) {
		switch {
		case element.FieldName != nil:
			value = map[string]any{*element.FieldName: value}
		default:
			item := value.(map[string]any)
			for _, key := range *element.Key {
				item[key.Name] = key.Value.Unstructured()
			}
			value = []any{item}
		}
	}
	return value.(map[string]any)
}

// fieldPlace is where a field is in an object.
type fieldPlace struct {
	// pointer is the JSON pointer of the field, or of what would have to be added for it to be there.
	pointer string
	// value is the one that is there.
	value any
	// missing is the rest of the path, below the pointer.
	missing fieldpath.Path
}

// locateField finds a field in an object.
func locateField(object map[string]any, path fieldpath.Path) (at fieldPlace, found bool) {
	at.value = object
	for i, element := range path {
		if element.FieldName != nil {
			at.pointer += "/" + escapePointer(*element.FieldName)
			next, ok := at.value.(map[string]any)[*element.FieldName]
			if !ok {
				at.missing = path[i+1:]
				return at, false
			}
			at.value = next
			continue
		}
		items, _ := at.value.([]any)
		index := slices.IndexFunc(items, func(item any) bool { return item.(map[string]any)["name"] == keyOf(element) })
		if index < 0 {
			at.pointer += "/-"
			at.missing = path[i:]
			return at, false
		}
		at.pointer += fmt.Sprintf("/%d", index)
		at.value = items[index]
	}
	return at, true
}

// set are the operations that give the field a value.
func (p fieldPlace) set(value any) []harness.Operation {
	if len(p.missing) > 0 {
		whole := bodyNaming(append(fieldmanager.Path("whole"), p.missing...), value)["whole"]
		if strings.HasSuffix(p.pointer, "/-") {
			whole = whole.([]any)[0]
		}
		value = whole
	}
	return []harness.Operation{harness.Add(p.pointer, value)}
}

func keyOf(element fieldpath.PathElement) any { return (*element.Key)[0].Value.Unstructured() }

// escapePointer makes a name fit for a JSON pointer (RFC 6901).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
