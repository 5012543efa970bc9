// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/status"
)

const (
	oidcFinalizerWrite = "apply MCPOIDCConfig/idp freehold-config-finalizer"
	oidcStatusWrite    = "apply MCPOIDCConfig/idp/status freehold-config-status"
)

// of is the metadata of an object that has been there for a while.
func of(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: types.UID("uid-of-" + name), Generation: 1,
		CreationTimestamp: metav1.NewTime(bubbleStart.Add(-time.Hour)),
		ManagedFields: []metav1.ManagedFieldsEntry{
			entry("kubectl-create", metav1.ManagedFieldsOperationUpdate, v1beta1.SchemeGroupVersion.String(), `{"f:spec":{".":{}}}`),
		},
	}
}

func newIDP() *v1beta1.MCPOIDCConfig {
	return &v1beta1.MCPOIDCConfig{ObjectMeta: of("idp"), Spec: v1beta1.MCPOIDCConfigSpec{
		Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: "https://idp.example.com"},
	}}
}

func newGroup(name string) *v1beta1.MCPGroup { return &v1beta1.MCPGroup{ObjectMeta: of(name)} }

// counting has objects of kinds that Freehold only counts, and is there for the operator.
func counting(objects ...*unstructured.Unstructured) (*dynamicfake.FakeDynamicClient, func(*Config)) {
	kinds := map[schema.GroupVersionResource]string{}
	for resource, kind := range configcontroller.Referrers() {
		kinds[resource] = kind + "List"
	}
	var all []runtime.Object
	for _, object := range objects {
		all = append(all, object)
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, all...)
	return client, func(c *Config) { c.Dynamic, c.Configs = client, configcontroller.ConfigsAuto }
}

// keeping makes the operator keep what MCPServers refer to.
func keeping(c *Config) { c.Configs = configcontroller.ConfigsAuto }

// other is an object of a kind that Freehold only counts.
func other(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": kind, "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": "shop", "uid": "uid-of-" + name, "resourceVersion": "1"},
	}}
}

// asToolHive writes an object as ToolHive's operator does, through a subresource.
func asToolHive[L runtime.Object](s *apiServer, name, subresource string, edit func(L)) {
	s.t.Helper()
	changeAs(s, subresource, managers.ToolHiveOperator, name, edit)
}

// keptByToolHive puts the config there as ToolHive's operator leaves it.
func keptByToolHive(s *apiServer) {
	s.t.Helper()
	asToolHive(s, "idp", "", func(c *v1beta1.MCPOIDCConfig) { c.Finalizers = []string{v1beta1.FinalizerOIDCConfig} })
	asToolHive(s, "idp", "status", func(c *v1beta1.MCPOIDCConfig) {
		c.Status = v1beta1.ConfigStatus{ConfigHash: "theirs", ObservedGeneration: 1, Conditions: []metav1.Condition{{
			Type: v1beta1.ConditionValid, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonConfigValid, Message: "Spec validation passed",
			ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(bubbleStart.Add(-time.Hour)),
		}}}
	})
}

// tookOn returns the writes about kinds that MCPServers refer to since it was asked last.
func (o *operating) tookOn() []string {
	return slices.DeleteFunc(o.took(), func(w string) bool {
		return !slices.ContainsFunc(managers.Configs(), func(config managers.Config) bool {
			return strings.Contains(w, config.Kind+"/") || strings.Contains(w, config.Resource)
		})
	})
}

func (o *operating) idp() *v1beta1.MCPOIDCConfig {
	o.t.Helper()
	found, ok := get[*v1beta1.MCPOIDCConfig](o.apiServer, "idp")
	if !ok {
		o.t.Fatal("the config does not exist")
	}
	return found
}

// heardOf returns the events about one object since it was asked last.
func (o *operating) heardOf(name string) []string {
	return slices.DeleteFunc(o.events.heard(), func(told string) bool { return !strings.HasPrefix(told, "shop/"+name+" ") })
}

// terminate begins the deletion of an object that a finalizer holds.
func terminate[L runtime.Object](s *apiServer, name string) {
	s.t.Helper()
	change(s, name, func(object L) { access(object).SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) })
}

func checkWrites(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Transformer("nil", func(all []string) []string { return append([]string{}, all...) })); diff != "" {
		t.Errorf("writes %s (-want +got):\n%s", what, diff)
	}
}

// A config gets its finalizer and a status that follows its spec; an invalid spec leaves the hash of the last valid one, and is Stalled, so
// that kstatus does not take it for done. Each change is told once, and nothing is written twice, not after a restart either.
func TestConfigIsValidated(t *testing.T) {
	operate(t, []runtime.Object{newIDP()}, keeping, func(t *testing.T, o *operating) {
		checkWrites(t, "at the start", o.tookOn(), oidcFinalizerWrite, oidcStatusWrite)
		hash, err := configs.Hash(newIDP().Spec)
		if err != nil {
			t.Fatal(err)
		}
		want := v1beta1.ConfigStatus{ConfigHash: hash, ObservedGeneration: 1, Conditions: []metav1.Condition{{
			Type: v1beta1.ConditionValid, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonConfigValid, Message: status.Worded("Spec validation passed"),
			ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(bubbleStart),
		}}}
		sameTimes := cmp.Comparer(func(a, b metav1.Time) bool { return a.Unix() == b.Unix() })
		live := o.idp()
		if diff := cmp.Diff(want, live.Status, sameTimes); diff != "" || !slices.Equal(live.Finalizers, []string{v1beta1.FinalizerOIDCConfig}) {
			t.Errorf("finalizers %v, status (-want +got):\n%s", live.Finalizers, diff)
		}

		change(o.apiServer, "idp", func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = "ftp://idp.example.com" })
		o.rest()
		checkWrites(t, "after an invalid edit", o.tookOn(), oidcStatusWrite)
		want.Conditions[0].Status, want.Conditions[0].Reason, want.Conditions[0].ObservedGeneration = metav1.ConditionFalse, v1beta1.ReasonConfigInvalid, 2
		want.Conditions[0].Message, want.Conditions[0].LastTransitionTime = status.Worded(configs.Read(o.idp()).Validate().Error()), metav1.NewTime(bubbleStart.Add(3*time.Second))
		want.ObservedGeneration = 2
		stalled := want.Conditions[0]
		stalled.Type, stalled.Status = v1beta1.ConditionStalled, metav1.ConditionTrue
		want.Conditions = append(want.Conditions, stalled)
		if diff := cmp.Diff(want, o.idp().Status, sameTimes); diff != "" {
			t.Errorf("status of an invalid spec (-want +got):\n%s", diff)
		}

		change(o.apiServer, "idp", func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = "http://idp.example.com" })
		o.rest()
		if is := o.idp().Status; !is.Conditions[0].LastTransitionTime.Time.Equal(bubbleStart.Add(3*time.Second)) ||
			is.Conditions[0].ObservedGeneration != 3 || is.ObservedGeneration != 3 {
			t.Errorf("status %+v of another invalid spec", is)
		}
		change(o.apiServer, "idp", func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = "https://other.example.com" })
		o.rest()
		if is := o.idp().Status; is.ConfigHash == hash || is.ObservedGeneration != 4 || !meta.IsStatusConditionTrue(is.Conditions, v1beta1.ConditionValid) ||
			meta.FindStatusCondition(is.Conditions, v1beta1.ConditionStalled) != nil {
			t.Errorf("status %+v of a spec that is valid again", is)
		}
		told := o.heardOf("idp")
		if len(told) != 2 || !strings.HasPrefix(told[0], "shop/idp Warning ConfigInvalid Validate: ") ||
			!strings.HasPrefix(told[1], "shop/idp Normal ConfigValid Validate: ") {
			t.Errorf("events %q", told)
		}

		o.took()
		o.end()
		again := start(t, o.apiServer, keeping)
		again.rest()
		checkWrites(t, "after a restart", again.tookOn())
		*o = *again
	})
}

// Every kind gets its finalizer and its status, and no configuration goes while an MCPServer refers to it.
func TestEveryKindIsKept(t *testing.T) {
	specs := map[string]string{
		configs.OIDC:        `"type":"inline","inline":{"issuer":"https://idp.example.com"}`,
		configs.AuthzConfig: `"type":"nonsense"`, configs.ExternalAuth: `"type":"obo","obo":{}`, configs.Tool: `"toolsFilter":["a"]`,
	}
	want := map[string]string{
		configs.OIDC: "Valid=True ConfigValid", configs.AuthzConfig: "Valid=False ConfigInvalid",
		configs.ExternalAuth: "Valid=False EnterpriseRequired", configs.Tool: "Valid=True ValidationSucceeded",
		configs.Telemetry: "Valid=True ValidationSucceeded", configs.Webhook: "Valid=False ValidationFailed",
		configs.Group: "MCPServersChecked=True ListMCPServersCheckSucceeded",
	}
	operate(t, nil, keeping, func(t *testing.T, o *operating) {
		decode := func(document string, into any) {
			if err := json.Unmarshal([]byte(document), into); err != nil {
				t.Fatal(err)
			}
		}
		server := newServer("web")
		for ref := range configs.References() {
			var refers v1beta1.MCPServer
			decode(`{"spec":{"`+ref.Field+`":{"name":"`+strings.ToLower(ref.Kind.Name)+`"}}}`, &refers)
			ref.Copy(&server.Spec, &refers.Spec)
			if want[ref.Kind.Name] == "" { // The table has a kind that is not above.
				want[ref.Kind.Name] = "Valid=True " + ref.Kind.Valid
			}
		}
		all := map[*apiserver.Kind]managers.Config{}
		for _, row := range managers.Configs() {
			kind := o.api.KindOf(row.Group, row.Kind)
			object, name := kind.New(), strings.ToLower(row.Kind)
			decode(`{"metadata":{"namespace":"shop","name":"`+name+`","uid":"`+name+`","creationTimestamp":"1999-01-01T00:00:00Z","generation":1},"spec":{`+specs[row.Kind]+`}}`, object)
			o.add(object)
			all[kind] = row
		}
		o.rest()
		got := map[string]string{}
		for kind, row := range all {
			found, _ := o.api.Get(kind, "shop", strings.ToLower(row.Kind))
			live := access(found)
			if !slices.Equal(live.GetFinalizers(), []string{row.Finalizer}) {
				t.Errorf("%s has the finalizers %v", row.Kind, live.GetFinalizers())
			}
			for _, c := range configConditions(live) {
				if stalled := c.Type == v1beta1.ConditionStalled; !stalled {
					got[row.Kind] += fmt.Sprint(c.Type, "=", c.Status, " ", c.Reason)
				} else if !strings.Contains(want[row.Kind], "Valid=False "+c.Reason) {
					t.Errorf("%s is Stalled: %s", row.Kind, c.Reason)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		if n := len(o.tookOn()); n != 2*len(all) {
			t.Errorf("%d writes, want two for each object", n)
		}
		o.end()
		again := start(t, o.apiServer, keeping)
		again.rest()
		checkWrites(t, "after a restart", again.tookOn())
		*o = *again

		o.add(server)
		o.rest()
		for kind, row := range all {
			o.changeAt(kind, "", "somebody", strings.ToLower(row.Kind), func(object runtime.Object) { access(object).SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) })
		}
		o.rest()
		for kind, row := range all {
			if _, held := o.api.Get(kind, "shop", strings.ToLower(row.Kind)); held == row.IsGroup() {
				t.Errorf("%s that an MCPServer refers to is held: %t", row.Kind, held)
			}
		}
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			for ref := range configs.References() {
				ref.Copy(&server.Spec, &v1beta1.MCPServerSpec{})
			}
		})
		o.rest()
		for kind, row := range all {
			if _, held := o.api.Get(kind, "shop", strings.ToLower(row.Kind)); held {
				t.Errorf("%s that nothing refers to is held", row.Kind)
			}
		}
	})
}

// What is deprecated is told in a condition and an event, beside a spec that cannot be used.
func TestWhatIsDeprecatedIsToldBesideAnInvalidSpec(t *testing.T) {
	external := &v1beta1.MCPExternalAuthConfig{ObjectMeta: of("login"), Spec: v1beta1.MCPExternalAuthConfigSpec{
		Type: v1beta1.ExternalAuthTypeEmbeddedAuthServer,
		EmbeddedAuthServer: &v1beta1.EmbeddedAuthServerConfig{
			TrustedIssuers: []v1beta1.TrustedIssuerConfig{{IssuerURL: "https://issuer.example.com", ExpectedAudience: "a"}},
		},
	}}
	operate(t, []runtime.Object{external}, keeping, func(t *testing.T, o *operating) {
		found, _ := get[*v1beta1.MCPExternalAuthConfig](o.apiServer, "login")
		if !meta.IsStatusConditionFalse(found.Status.Conditions, v1beta1.ConditionValid) ||
			!meta.IsStatusConditionFalse(found.Status.Conditions, v1beta1.ConditionIdentitySynthesized) ||
			!meta.IsStatusConditionTrue(found.Status.Conditions, v1beta1.ConditionDeprecatedInboundGrantConfiguration) {
			t.Errorf("conditions %+v", found.Status.Conditions)
		}
		told := o.heardOf("login")
		if len(told) != 2 || !strings.HasPrefix(told[1], "shop/login Warning InboundGrantsLegacyFieldsDeprecated MigrateInboundGrants: ") {
			t.Errorf("events %q", told)
		}
		change(o.apiServer, "login", func(c *v1beta1.MCPExternalAuthConfig) {
			c.Spec = v1beta1.MCPExternalAuthConfigSpec{Type: v1beta1.ExternalAuthTypeUnauthenticated}
		})
		o.rest()
		found, _ = get[*v1beta1.MCPExternalAuthConfig](o.apiServer, "login")
		if len(found.Status.Conditions) != 1 || found.Status.Conditions[0].Type != v1beta1.ConditionValid {
			t.Errorf("conditions %+v of another type", found.Status.Conditions)
		}
	})
}

// A refused write is tried again after waits that grow.
func TestConfigIsRefused(t *testing.T) {
	operate(t, nil, keeping, func(t *testing.T, o *operating) {
		allow := o.forbidApplies()
		o.add(newIDP())
		<-time.After(time.Hour)
		if n := len(o.tookOn()); n < 5 || n > 25 {
			t.Errorf("%d writes within an hour", n)
		}
		allow()
		<-time.After(11 * time.Minute)
		checkWrites(t, "in the end", o.tookOn(), oidcFinalizerWrite, oidcStatusWrite)
	})
}

// A status that is refused is the same one when it is tried again, so its waits grow as well.
func TestStatusOfConfigIsRefused(t *testing.T) {
	operate(t, nil, keeping, func(t *testing.T, o *operating) {
		var refused atomic.Int32
		o.before.set(func(w write) error {
			if w.kind != "MCPOIDCConfig" || w.subresource != "status" {
				return nil
			}
			refused.Add(1)
			return apierrors.NewServiceUnavailable("later")
		})
		o.add(newIDP())
		<-time.After(20 * time.Minute)
		if n := refused.Load(); n < 5 || n > 20 {
			t.Errorf("%d tries within twenty minutes", n)
		}
		o.before.set(nil)
		<-time.After(11 * time.Minute)
		if c := o.idp().Status.Conditions; len(c) == 0 {
			t.Error("nothing is said in the end")
		}
	})
}

// A cluster that does not serve what Freehold only counts, or does not let it list that, is no reason to hold anything.
func TestKindsThatCannotBeListedHoldNothing(t *testing.T) {
	client, with := counting()
	resources := map[string]error{
		"virtualmcpservers": apierrors.NewNotFound(schema.GroupResource{}, ""), "mcpremoteproxies": apierrors.NewForbidden(schema.GroupResource{}, "", nil),
	}
	for resource, refusal := range resources {
		client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
	}
	operate(t, []runtime.Object{newIDP(), newGroup("team")}, with, func(t *testing.T, o *operating) {
		group, _ := get[*v1beta1.MCPGroup](o.apiServer, "team")
		if c := group.Status.Conditions; group.Status.Phase != v1beta1.MCPGroupPhaseReady || c[0].Status != metav1.ConditionFalse || !strings.Contains(c[0].Message, "not allowed to list: MCPRemoteProxy") {
			t.Errorf("status %+v", group.Status)
		}
		terminate[*v1beta1.MCPOIDCConfig](o.apiServer, "idp")
		o.rest()
		if exists[*v1beta1.MCPOIDCConfig](o.apiServer, "idp") {
			t.Error("the config is still there")
		}
	})
}

// configConditions returns the conditions of an object that MCPServers refer to.
func configConditions(live metav1.Object) []metav1.Condition {
	if group, ok := live.(*v1beta1.MCPGroup); ok {
		return group.Status.Conditions
	}
	return configs.Read(live).Status.Conditions
}
