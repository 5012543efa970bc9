// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// reconcile makes all others give up what they claim, and the author ask for nothing special any more. All must then be
// as with a new MCPServer of the same spec, values and owners, but for what neutral leaves out.
func (s *scenario) reconcile(ctx context.Context) error {
	if err := s.edit(ctx, func(server *v1beta1.MCPServer) {
		delete(server.Annotations, v1beta1.AnnotationYield)
		delete(server.Annotations, v1beta1.AnnotationTake)
	}); err != nil {
		return err
	}
	objects, err := s.ns.ObjectsOf(ctx, s.name)
	if err != nil {
		return err
	}
	steps := 1
	for component, object := range objects {
		if component == harness.ServerItself {
			continue
		}
		given, err := s.giveUp(ctx, component, object)
		if err != nil {
			return fmt.Errorf("%s: %w", component, err)
		}
		steps += given
	}
	if err := s.rest(ctx, steps); err != nil {
		return err
	}
	server, err := s.ns.Servers.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fresh := &scenario{ns: s.ns, history: s.history, name: strings.Replace(s.name, "first", "fresh", 1), begun: s.begun}
	_, err = s.ns.Servers.Create(ctx, &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: fresh.name}, Spec: server.Spec,
	}, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		return err
	}
	if err := fresh.rest(ctx, 1); err != nil {
		return fmt.Errorf("the new one: %w", err)
	}
	if err := s.compare(ctx, fresh, server); err != nil {
		return err
	}
	return s.ns.Servers.Delete(ctx, fresh.name, metav1.DeleteOptions{})
}

// giveUp takes back what others did to an object. What they applied they give up by an empty apply, where the API server
// lets them: a container must have an image. Fields of their own go otherwise, and last their claims, without the values:
// these are the operator's to put right. It returns how many writes that took.
func (s *scenario) giveUp(ctx context.Context, component harness.Component, object *unstructured.Unstructured) (writes int, err error) {
	for _, by := range scenarioAppliers {
		if ownership.ApplyEntry(object, by, "") == nil {
			continue
		}
		writes++
		if _, err := s.ns.Apply(ctx, by, component, s.name, false, nil); err != nil && !apierrors.IsInvalid(err) {
			return writes, err
		}
	}
	for {
		object, err := s.ns.Object(ctx, component, s.name)
		if err != nil {
			return writes, err
		}
		operations := foreignFields(component, object)
		kept := slices.DeleteFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return !belongs(component, &e) })
		if len(operations) == 0 && len(kept) == len(object.GetManagedFields()) {
			return writes, nil
		}
		if len(operations) == 0 {
			operations = append(operations, harness.Replace("/metadata/managedFields", kept))
		}
		operations = append(operations, harness.Replace("/metadata/resourceVersion", object.GetResourceVersion()))
		writes++
		if _, err := s.ns.Patch(ctx, harness.Hand, component, s.name, operations...); err != nil && !apierrors.IsConflict(err) {
			return writes, err
		}
	}
}

// foreignFields are the operations that take away the first field of an object that Freehold does not set.
func foreignFields(component harness.Component, object *unstructured.Unstructured) []harness.Operation {
	for _, field := range scenarioFields {
		if !field.foreign || field.component != component {
			continue
		}
		path := field.path
		if last := path[len(path)-2]; last.Key != nil {
			path = path[:len(path)-1] // An item of a list goes as a whole.
		}
		if at, found := locateField(object.Object, path); found {
			return []harness.Operation{harness.Remove(at.pointer)}
		}
	}
	return nil
}

// belongs tells whether an entry is Freehold's or the control plane's.
func belongs(component harness.Component, entry *metav1.ManagedFieldsEntry) bool {
	return strings.HasPrefix(entry.Manager, "freehold-") || isSystem(component, entry)
}

// compare compares the MCPServer at the end of the scenario with a new one.
func (s *scenario) compare(ctx context.Context, fresh *scenario, server *v1beta1.MCPServer) error {
	var errs []error
	objects, err := s.ns.ObjectsOf(ctx, s.name)
	if err != nil {
		return err
	}
	newObjects, err := s.ns.ObjectsOf(ctx, fresh.name)
	if err != nil {
		return err
	}
	for _, component := range append(harness.ComponentsOf(server), harness.HeadlessService, harness.BackendService) {
		left, err := neutral(server, component, objects)
		if err != nil {
			return err
		}
		right, err := neutral(server, component, newObjects)
		if err != nil {
			return err
		}
		if diff := gocmp.Diff(right, left); diff != "" {
			errs = append(errs, fmt.Errorf("the %s is not as a new one (-new +left):\n%s", component, diff))
		}
	}
	return errors.Join(errs...)
}

// contentName is the end of the name of configuration that is named by its content.
var contentName = regexp.MustCompile(`(-runconfig|-authz-inline)-[0-9a-f]{16}`)

// neutral is an object and who owns what of it, without what may differ from that of another MCPServer of the same spec:
// names, UIDs, versions and times; checksums over what has the name in it; the generations that things were made from;
// and, where the spec says nothing of them, the numbers of replicas, which stay as they were left. What rides along until
// the pods are replaced is left out, and that a number of replicas was once set back is still told. See unsharedSessions for
// the warning that follows the number of proxies.
func neutral(server *v1beta1.MCPServer, component harness.Component, objects map[harness.Component]*unstructured.Unstructured) (map[string]string, error) {
	if objects[component] == nil {
		return nil, nil
	}
	object, itself := objects[component].DeepCopy(), objects[harness.ServerItself]
	free := component == harness.Proxy && server.Spec.Replicas == nil || component == harness.Backend && server.Spec.BackendReplicas == nil
	owners := map[string]map[string]any{}
	for _, entry := range object.GetManagedFields() {
		set, err := ownership.Fields(&entry)
		if err != nil {
			return nil, err
		}
		owner := fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.Subresource)
		if isSystem(component, &entry) || free && entry.Manager == harness.FormOf(component).Replicas {
			continue
		}
		owners[owner] = map[string]any{}
		for path := range set.All() {
			if component != harness.ServerItself || entry.Manager != managers.Status {
				owners[owner][path.String()] = true
			}
		}
	}
	content := object.Object
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	for _, key := range []string{
		"deployment.kubernetes.io/revision", v1beta1.AnnotationSource, v1beta1.AnnotationReplicasSource, v1beta1.AnnotationContentChecksum,
	} {
		unstructured.RemoveNestedField(content, "metadata", "annotations", key)
	}
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "annotations", v1beta1.AnnotationAttachedTo)
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "annotations", v1beta1.AnnotationConfigUIDs)
	switch component {
	case harness.ServerItself:
		content = map[string]any{"finalizers": object.GetFinalizers(), "conditions": conditionsOf(object)}
		for _, field := range []string{"phase", "url"} {
			content[field], _, _ = unstructured.NestedString(object.Object, "status", field)
		}
	case harness.HeadlessService, harness.BackendService, harness.ProxyService:
		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "spec", "clusterIP")
		unstructured.RemoveNestedField(content, "spec", "clusterIPs")
	case harness.Proxy, harness.Backend:
		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "spec", "template", "metadata", "labels", "toolhive-port")
		unstructured.RemoveNestedField(content, "spec", "template", "metadata", "annotations", v1beta1.AnnotationRunConfigChecksum)
		if free {
			unstructured.RemoveNestedField(content, "spec", "replicas")
		}
	}
	text, err := json.Marshal(map[string]any{"content": content, "owners": owners})
	if err != nil {
		return nil, err
	}
	named := strings.NewReplacer(itself.GetName(), "NAME", string(itself.GetUID()), "UID").Replace(string(text))
	named = contentName.ReplaceAllString(named, "$1-CONTENT") // which has the name in it
	var anybody any
	if err := json.Unmarshal([]byte(named), &anybody); err != nil {
		return nil, err
	}
	leaves := map[string]string{}
	flatten(leaves, "", anybody)
	return leaves, nil
}

// flatten lists the leaves of a JSON document by their paths.
func flatten(leaves map[string]string, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			flatten(leaves, path+"."+key, below)
		}
	case []any:
		for i, below := range value {
			flatten(leaves, fmt.Sprintf("%s[%d]", path, i), below)
		}
	default:
		leaves[path] = fmt.Sprint(value)
	}
}

// conditionsOf are the conditions of an MCPServer that must be as those of a new one.
func conditionsOf(object *unstructured.Unstructured) []string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var told []string
	for _, c := range conditions {
		condition := c.(map[string]any)
		switch condition["type"] {
		case v1beta1.ConditionStdioReplicaCapped, v1beta1.ConditionSessionStorageWarning:
		default:
			told = append(told, fmt.Sprint(condition["type"], " ", condition["status"], " ", condition["reason"]))
		}
	}
	slices.Sort(told)
	return told
}
