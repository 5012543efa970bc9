// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// contest is what a writer of ours and others disagree about in one object.
type contest struct {
	// object and writer are named as the condition names them.
	object, writer string
	// paths are the contested fields, and owners who else holds them.
	paths  []string
	owners map[string][]ownership.Owner
}

// disagreements tells how an MCPServer's objects differ from what a fresh one of the same spec would have without its
// status saying so, and what the status says that is not so. It also counts the conflicts that there are.
//
// A difference may be left to others because the author asked for that; or others own the field, and then condition
// FieldsOwned has to tell; or it is in an object that its writer cannot write for such a reason.
func (s *scenario) disagreements(ctx context.Context) (wrong []string, standing int, err error) {
	objects, err := s.ns.ObjectsOf(ctx, s.name)
	if err != nil {
		return nil, 0, err
	}
	server, err := s.ns.Servers.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	rendered, err := render.Render(render.Input{Server: server}, render.Options{})
	if err != nil {
		return nil, 0, err
	}
	var contests []contest
	held := map[render.ObjectRef]bool{}
	for _, intent := range rendered.Intents {
		itself := render.ObjectRef{Kind: intent.Kind, Name: intent.Name}
		waits := slices.ContainsFunc(intent.DependsOn, func(ref render.ObjectRef) bool { return held[ref] })
		held[itself] = held[itself] || waits
		component, object, err := s.componentNamed(ctx, objects, intent)
		if err != nil {
			return nil, 0, err
		}
		if object == nil && waits {
			continue
		}
		if object == nil {
			wrong = append(wrong, fmt.Sprintf("there is no %s %s", intent.Kind, intent.Name))
			continue
		}
		c := contest{
			object: objectName(harness.FormOf(component), s.name), writer: intent.Writer, owners: map[string][]ownership.Owner{},
		}
		differing, err := s.differing(server, component, object, intent)
		if err != nil {
			return nil, 0, err
		}
		for _, path := range differing {
			if by := otherOwners(object, path, intent.Writer); len(by) > 0 {
				c.paths, c.owners[path] = append(c.paths, path), by
			}
		}
		switch {
		case waits:
			// It is not written while others own fields of what it depends on.
		case len(c.paths) > 0:
			contests = append(contests, c)
			held[itself] = true
		case len(differing) > 0:
			wrong = append(wrong, fmt.Sprintf("%s of %s are not as they should be, and nobody else owns them", differing, c.object))
		}
	}
	if rendered.SinglePod {
		wrong = append(wrong, tooMany(objects)...)
	}
	wrong = append(wrong, unsharedSessions(server, objects)...)
	return append(wrong, untold(server, contests)...), len(contests), nil
}

// componentNamed returns the object that an intent is about; nil when there is none. Of configuration that is named by its
// content, objects has what the proxy's Deployment names, and that is an earlier one while the Deployment is not written.
func (s *scenario) componentNamed(
	ctx context.Context, objects map[harness.Component]*unstructured.Unstructured, intent render.Intent,
) (harness.Component, *unstructured.Unstructured, error) {
	for component, object := range objects {
		form := harness.FormOf(component)
		switch {
		case form.Kind != intent.Kind:
		case object.GetName() == intent.Name:
			return component, object, nil
		case form.Digest && form.Manager == intent.Writer:
			named, err := s.ns.Objects(component).Get(ctx, intent.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return component, nil, nil
			}
			return component, named, err
		}
	}
	return "", nil, nil
}

// tooMany tells which workloads of a server with transport stdio have too many pods.
func tooMany(objects map[harness.Component]*unstructured.Unstructured) []string {
	var wrong []string
	for _, component := range []harness.Component{harness.Backend, harness.Proxy} {
		if object := objects[component]; object != nil {
			if number, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); number > 1 {
				wrong = append(wrong, fmt.Sprintf("the %s of a server with transport stdio has %d replicas", component, number))
			}
		}
	}
	return wrong
}

// unsharedSessions tells whether an MCPServer, none of which has a session store here, does not warn although the spec or
// another client has made its proxies several, or warns of one.
func unsharedSessions(server *v1beta1.MCPServer, objects map[harness.Component]*unstructured.Unstructured) []string {
	proxies := int64(ptr.Deref(server.Spec.Replicas, 1))
	if object := objects[harness.Proxy]; object != nil {
		live, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		proxies = max(proxies, live)
	}
	warned := meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionSessionStorageWarning)
	if warned == (server.Spec.Transport != v1beta1.TransportStdio && proxies > 1) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %v with %d proxies", v1beta1.ConditionSessionStorageWarning, warned, proxies)}
}

// differing are the fields in which an object is not as the intent wants it, but for those that are left to others and
// those that carry no behaviour and ride along.
func (s *scenario) differing(
	server *v1beta1.MCPServer, component harness.Component, object *unstructured.Unstructured, intent render.Intent,
) ([]string, error) {
	body, err := json.Marshal(intent.Config)
	if err != nil {
		return nil, err
	}
	config := &unstructured.Unstructured{}
	if err := config.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	live, err := harness.TypedOf(object)
	if err != nil {
		return nil, err
	}
	wanted, err := harness.TypedOf(config)
	if err != nil {
		return nil, err
	}
	merged, err := live.Merge(wanted)
	if err != nil {
		return nil, err
	}
	difference, err := live.Compare(merged)
	if err != nil {
		return nil, err
	}
	var paths []string
	for path := range touched(difference).All() {
		if !s.yielded(server, component, path) && !slices.Contains(ridingAlong, path.String()) {
			paths = append(paths, path.String())
		}
	}
	return paths, nil
}

// ridingAlong are the values that stay until the pods are replaced for another cause, see render.PreserveBackend.
var ridingAlong = []string{
	".spec.template.metadata.labels.toolhive-port",
	".spec.template.metadata.annotations." + v1beta1.AnnotationGeneration,
}

// yielded tells whether the author leaves a field to others: a field of a workload or a Service, but for a selector.
func (s *scenario) yielded(server *v1beta1.MCPServer, component harness.Component, path fieldpath.Path) bool {
	switch harness.FormOf(component).Kind {
	case managers.Deployment, managers.StatefulSet, managers.ServiceKind:
	default:
		return false
	}
	asked := disputed{component: component, path: path}.selector(s.name)
	return server.Annotations[v1beta1.AnnotationYield] == asked && path.String() != ".spec.selector"
}

func otherOwners(object *unstructured.Unstructured, path, writer string) []ownership.Owner {
	return slices.DeleteFunc(ownership.Owners(object, path), func(o ownership.Owner) bool { return o.Manager == writer })
}

// toldConflict is what condition FieldsOwned says of a conflict.
var toldConflict = regexp.MustCompile(`^(field manager (".*?"(?: with subresource ".*?")?)|another field manager) owns (\S+) of (\S+?)` +
	`(?: \(\+(\d+) more fields\))?; (\S+) (?:wants a different value|removes it)\. .*?(?: \(\+(\d+) more\))?$`)

// untold tells how condition FieldsOwned differs from what there is to be told.
func untold(server *v1beta1.MCPServer, contests []contest) []string {
	condition := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
	switch {
	case condition == nil || condition.ObservedGeneration != server.Generation || server.Status.ObservedGeneration != server.Generation:
		return []string{fmt.Sprintf("the status is not of generation %d: %+v", server.Generation, condition)}
	case len(contests) == 0 && condition.Status == metav1.ConditionTrue:
		return nil
	case len(contests) == 0 || condition.Status != metav1.ConditionFalse || condition.Reason != "FieldManagerConflict":
		return []string{fmt.Sprintf("the contests are %+v, but the condition is %+v", contests, condition)}
	}
	parts := toldConflict.FindStringSubmatch(condition.Message)
	if parts == nil {
		return []string{"the condition does not name what it is about: " + condition.Message}
	}
	owner, path, object, writer := parts[2], parts[3], parts[4], parts[6]
	more, _ := strconv.Atoi(cmp.Or(parts[5], "0"))
	further, _ := strconv.Atoi(cmp.Or(parts[7], "0"))
	at := slices.IndexFunc(contests, func(c contest) bool { return c.object == object && c.writer == writer })
	if at < 0 {
		return []string{fmt.Sprintf("the contests are %+v, and not: %s", contests, condition.Message)}
	}
	c := contests[at]
	names := func(o ownership.Owner) bool { return o.String() == owner }
	if !slices.ContainsFunc(c.owners[path], names) || more != len(c.paths)-1 || further != len(contests)-1 {
		return []string{fmt.Sprintf("the contests are %+v, and the condition says: %s", contests, condition.Message)}
	}
	for _, path := range c.paths {
		if !strings.Contains(condition.Message, object+":"+path) {
			return []string{fmt.Sprintf("the condition does not say how to take %s: %s", path, condition.Message)}
		}
	}
	return nil
}
