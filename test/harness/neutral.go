// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// contentName is the end of the name of a ConfigMap that is named by its content.
var contentName = regexp.MustCompile(`(-runconfig|-authz-inline)-[0-9a-f]{16}`)

// Neutral returns an object and its owners as leaves of a document, without what may differ between two MCPServers of the
// same spec: names, UIDs, versions and times; checksums of content that has the name in it; the generations that the
// content was made from; and, where the spec names none, the numbers of replicas. Neither has it what changes only when
// pods are replaced, nor the conditions about numbers of replicas.
func Neutral(server *v1beta1.MCPServer, component Component, objects map[Component]*unstructured.Unstructured) (map[string]string, error) {
	if objects[component] == nil {
		return nil, nil
	}
	object, itself := objects[component].DeepCopy(), objects[ServerItself]
	free := component == Proxy && server.Spec.Replicas == nil || component == Backend && server.Spec.BackendReplicas == nil
	owners := map[string]map[string]any{}
	for _, entry := range object.GetManagedFields() {
		set, err := ownership.Fields(&entry)
		if err != nil {
			return nil, err
		}
		owner := fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.Subresource)
		if IsSystem(component, &entry) || free && entry.Manager == FormOf(component).Replicas {
			continue
		}
		owners[owner] = map[string]any{}
		for path := range set.All() {
			if component != ServerItself || entry.Manager != managers.Status {
				owners[owner][path.String()] = true
			}
		}
	}
	content := object.Object
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	for _, key := range []string{
		"deployment.kubernetes.io/revision", v1beta1.AnnotationSource, v1beta1.AnnotationReferences, v1beta1.AnnotationReplicasSource,
		v1beta1.AnnotationReplicasWritten, v1beta1.AnnotationContentChecksum,
	} {
		unstructured.RemoveNestedField(content, "metadata", "annotations", key)
	}
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "annotations", v1beta1.AnnotationAttachedTo)
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "annotations", v1beta1.AnnotationConfigUIDs)
	switch component {
	case ServerItself:
		content = map[string]any{"finalizers": object.GetFinalizers(), "conditions": conditionsOf(object)}
		for _, field := range []string{"phase", "url"} {
			content[field], _, _ = unstructured.NestedString(object.Object, "status", field)
		}
	case HeadlessService, BackendService, ProxyService:
		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "spec", "clusterIP")
		unstructured.RemoveNestedField(content, "spec", "clusterIPs")
	case Proxy, Backend:
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

// conditionsOf returns the conditions of an MCPServer that must be as those of a new one.
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
