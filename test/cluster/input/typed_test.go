// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
)

// copier makes an object of another name with the spec of the one that it reads.
type copier func(ctx context.Context, from, to string) error

// typedCopies returns the copiers of the typed clients, by kind.
func typedCopies(clients versioned.Interface, namespace string) map[string]copier {
	beta, alpha := clients.ToolhiveV1beta1(), clients.ToolhiveV1alpha1()
	return map[string]copier{
		"MCPServer":             copies(beta.MCPServers(namespace)),
		"MCPOIDCConfig":         copies(beta.MCPOIDCConfigs(namespace)),
		"MCPAuthzConfig":        copies(beta.MCPAuthzConfigs(namespace)),
		"MCPExternalAuthConfig": copies(beta.MCPExternalAuthConfigs(namespace)),
		"MCPToolConfig":         copies(beta.MCPToolConfigs(namespace)),
		"MCPTelemetryConfig":    copies(beta.MCPTelemetryConfigs(namespace)),
		"MCPGroup":              copies(beta.MCPGroups(namespace)),
		"MCPWebhookConfig":      copies(alpha.MCPWebhookConfigs(namespace)),
	}
}

// typedClient is what the typed clients have in common.
type typedClient[P metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (P, error)
	Create(ctx context.Context, object P, options metav1.CreateOptions) (P, error)
}

func copies[P metav1.Object](client typedClient[P]) copier {
	return func(ctx context.Context, from, to string) error {
		object, err := client.Get(ctx, from, metav1.GetOptions{})
		if err != nil {
			return err
		}
		fields := reflect.ValueOf(object).Elem()
		fields.FieldByName("ObjectMeta").Set(reflect.ValueOf(metav1.ObjectMeta{Name: to}))
		spec := fields.FieldByName("Spec")
		if unknown, malformed := spec.FieldByName("UnknownFields"), spec.FieldByName("Malformed"); unknown.Len() > 0 || malformed.Len() > 0 {
			return fmt.Errorf("the type of %s cannot hold %v %s", from, unknown, malformed)
		}
		_, err = client.Create(ctx, object, metav1.CreateOptions{})
		return err
	}
}

// missingPaths returns the paths of what is in a document and not in another, which may have more.
func missingPaths(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return []string{path}
		}
		var all []string
		for key, value := range want {
			all = append(all, missingPaths(path+"."+key, value, got[key])...)
		}
		return all
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return []string{path}
		}
		var all []string
		for i := range want {
			all = append(all, missingPaths(fmt.Sprintf("%s[%d]", path, i), want[i], got[i])...)
		}
		return all
	}
	if !reflect.DeepEqual(want, got) {
		return []string{path}
	}
	return nil
}
