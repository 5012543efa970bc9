// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// What is held of an MCPServer is all there is to it, and what others have alike is the same text.
func TestSlimServersKeepAllAndShareTexts(t *testing.T) {
	decoded := func() *v1beta1.MCPServer {
		server := &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
		server.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: strings.Clone("team"), Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: strings.Clone("v1"),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.Clone(`{"f:spec":{}}`)),
		}}
		server.Status.Conditions = []metav1.Condition{{Type: strings.Clone("Ready"), Status: metav1.ConditionTrue, Message: strings.Clone("well")}}
		return server
	}
	reduce := reduceServers(Selecting(nil), 0)
	var held []*v1beta1.MCPServer
	for range 2 {
		got, err := reduce(decoded())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(), got); diff != "" {
			t.Errorf("something else is held (-want +got):\n%s", diff)
		}
		held = append(held, got.(*v1beta1.MCPServer))
	}
	for what, of := range map[string]func(*v1beta1.MCPServer) string{
		"message": func(s *v1beta1.MCPServer) string { return s.Status.Conditions[0].Message },
		"fields":  func(s *v1beta1.MCPServer) string { return s.ManagedFields[0].FieldsV1.GetRawString() },
	} {
		if unsafe.StringData(of(held[0])) != unsafe.StringData(of(held[1])) {
			t.Errorf("the %s is held twice", what)
		}
	}
}

// Of an MCPServer of another operator the cache keeps what it refers to, whatever that is, and who it is.
func TestReduceAnotherOperatorsMCPServerToItsReferences(t *testing.T) {
	server := &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	server.UID, server.ResourceVersion, server.Generation = "uid", "7", 3
	server.Labels = map[string]string{"shard": "b"}
	server.Spec.Args = []string{"many"}
	server.Status.Message = "long"
	server.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "team"}}
	spec := reflect.ValueOf(&server.Spec).Elem()
	var refs []string
	for i := range spec.NumField() {
		field := spec.Type().Field(i)
		if !strings.HasSuffix(field.Name, "Ref") {
			continue
		}
		refs = append(refs, field.Name)
		made := reflect.New(field.Type.Elem())
		made.Elem().FieldByName("Name").SetString(strings.ToLower(field.Name))
		spec.Field(i).Set(made)
	}
	if len(refs) < 8 {
		t.Fatalf("an MCPServer refers to %v", refs)
	}
	got := outlineOf(server)
	if diff := cmp.Diff(configs.Of(&server.Spec), configs.Of(&got.Spec)); diff != "" {
		t.Errorf("it refers to something else (-want +got):\n%s", diff)
	}
	got.Spec = v1beta1.MCPServerSpec{}
	want := &v1beta1.MCPServer{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "shop", UID: "uid", ResourceVersion: "7", Generation: 3, Labels: map[string]string{"shard": "b"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is kept (-want +got):\n%s", diff)
	}
}
