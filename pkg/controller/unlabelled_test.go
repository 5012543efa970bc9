// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// A child that has lost the label that it is selected by is found by its creation being refused, and gets its label back.
func TestLostLabelComesBack(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.took()
		o.reads()
		change(o.apiServer, "web-sa", func(account *corev1.ServiceAccount) { account.Labels = nil })
		o.rest()
		o.expect([]string{"apply ServiceAccount/web-sa freehold-access", "apply ServiceAccount/web-sa freehold-access"}, "a label was lost")
		if reads := o.reads(); !slices.Equal(reads, []string{"get serviceaccounts"}) {
			t.Errorf("reads %v", reads)
		}
		account, _ := get[*corev1.ServiceAccount](o.apiServer, "web-sa")
		if account.Labels[v1beta1.LabelToolHive] != "true" {
			t.Errorf("labels %v", account.Labels)
		}
		o.queue.Add(key("web"))
		<-time.After(time.Hour)
		o.rest()
		o.expect(nil, "the label is back")
		if reads := o.reads(); len(reads) > 0 {
			t.Errorf("reads in peace: %v", reads)
		}
	})
}

// A child without the label that is being deleted, and is kept by another client's finalizer, is reported as one that has the label, and
// created again when it has gone.
func TestAChildWithoutALabelThatIsKeptIsReported(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.took()
		o.reads()
		change(o.apiServer, "web-sa", func(account *corev1.ServiceAccount) {
			account.Labels, account.Finalizers, account.DeletionTimestamp = nil, []string{"example.com/keep"}, new(metav1.Now())
		})
		<-time.After(time.Hour)
		o.rest()
		status, reason, message := o.condition("web", v1beta1.ConditionApplied)
		if status != metav1.ConditionFalse || reason != v1beta1.ReasonObjectTerminating || !strings.Contains(message, "web-sa") {
			t.Errorf("Applied is %s because of %s: %s", status, reason, message)
		}
		if took := o.took(); len(took) > 4 {
			t.Errorf("writes in an hour: %v", took)
		}
		if reads := o.reads(); len(reads) > 16 {
			t.Errorf("%d reads in an hour: %v", len(reads), reads)
		}
		remove[*corev1.ServiceAccount](o.apiServer, "web-sa")
		<-time.After(apply.LongestWait)
		o.rest()
		if account, there := get[*corev1.ServiceAccount](o.apiServer, "web-sa"); !there || account.DeletionTimestamp != nil {
			t.Errorf("it is not created again: %v", account)
		}
		if status, reason, message := o.condition("web", v1beta1.ConditionApplied); status != metav1.ConditionTrue {
			t.Errorf("Applied is %s because of %s: %s", status, reason, message)
		}
	})
}

// The API server may refuse a creation for want of a right or of quota before it looks whether the name is free.
func TestForbiddenCreationFindsWhatIsThere(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		var refused atomic.Bool
		o.before.set(func(w write) error {
			if w.name == "web-sa" && !refused.Swap(true) {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, fmt.Errorf("exceeded quota"))
			}
			return nil
		})
		o.took()
		o.reads()
		change(o.apiServer, "web-sa", func(account *corev1.ServiceAccount) { account.Labels = nil })
		o.rest()
		o.expect([]string{"apply ServiceAccount/web-sa freehold-access", "apply ServiceAccount/web-sa freehold-access"}, "a label was lost")
		if reads := o.reads(); !slices.Equal(reads, []string{"get serviceaccounts"}) {
			t.Errorf("reads %v", reads)
		}
		if account, _ := get[*corev1.ServiceAccount](o.apiServer, "web-sa"); account.Labels[v1beta1.LabelToolHive] != "true" {
			t.Errorf("labels %v", account.Labels)
		}
	})
}

// A creation that is refused again and again for the same reason has the name looked at once. For another reason, or after the
// object was there, it is looked at anew.
func TestRepeatedRefusalOfACreationIsLookedAtOnce(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		reason := atomic.Pointer[string]{}
		o.before.set(func(w write) error {
			if why := reason.Load(); w.name == "web-sa" && why != nil {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, errors.New(*why))
			}
			return nil
		})
		o.reads()
		refuse := func(why, step string) {
			t.Helper()
			reason.Store(&why)
			o.took()
			if _, there := get[*corev1.ServiceAccount](o.apiServer, "web-sa"); there {
				remove[*corev1.ServiceAccount](o.apiServer, "web-sa")
			}
			<-time.After(time.Hour)
			o.rest()
			if tried := o.took(); len(tried) < 5 {
				t.Errorf("%s: tried %v", step, tried)
			}
			if reads := o.reads(); !slices.Equal(reads, []string{"get serviceaccounts"}) {
				t.Errorf("%s: reads %v", step, reads)
			}
		}
		refuse("a policy says no", "at first")
		refuse("exceeded quota", "for another reason")
		reason.Store(nil)
		<-time.After(apply.LongestWait)
		o.rest()
		refuse("exceeded quota", "once it was there")
	})
}

// What ToolHive may have made without labels has to be known before anything is taken over. As long as it cannot be read, that is
// tried after waits that grow, and a condition says so.
func TestATakeoverWaitsForWhatCannotBeRead(t *testing.T) {
	for name, answer := range map[string]error{
		"unavailable": apierrors.NewServiceUnavailable("later"),
		// That is no answer about the object.
		"not served": apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "web-proxy-runner", "404 page not found", 0, true),
	} {
		t.Run(name, func(t *testing.T) { takeOverUnread(t, answer) })
	}
}

func takeOverUnread(t *testing.T, answer error) {
	t.Helper()
	operate(t, nil, nil, func(t *testing.T, o *operating) {
		var reads atomic.Int32
		o.arriving.set(func(r *apiserver.Request) error {
			if r.Verb != "get" || r.Kind.Kind != "Role" {
				return nil
			}
			reads.Add(1)
			return answer
		})
		for _, object := range byToolHive("web", "5") {
			o.add(object)
		}
		<-time.After(time.Hour)
		o.rest()
		if n := reads.Load(); n < 10 || n > 40 {
			t.Errorf("%d reads in an hour, want some and few", n)
		}
		status, reason, message := o.condition("web", v1beta1.ConditionApplied)
		if status != metav1.ConditionFalse || reason != v1beta1.ReasonRetrying || !strings.Contains(message, "role.rbac.authorization.k8s.io/web-proxy-runner") {
			t.Errorf("Applied is %s because of %s: %s", status, reason, message)
		}
		for _, write := range o.took() {
			if !strings.Contains(write, " MCPServer/web") {
				t.Errorf("%s, although nothing may be taken over", write)
			}
		}
		o.arriving.set(nil)
		<-time.After(apply.LongestWait)
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionApplied); status != metav1.ConditionTrue {
			t.Errorf("at last Applied is %s because of %s: %s", status, reason, message)
		}
	})
}

// A child that has lost its labels and its owner reference, while nobody may write it, goes with its MCPServer all the same.
func TestDeletionFindsWhatNoInformerShows(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		allow := o.forbidApplies()
		change(o.apiServer, "web-sa", func(account *corev1.ServiceAccount) { account.Labels, account.OwnerReferences = nil, nil })
		change(o.apiServer, o.configNamed("web-runconfig"), func(c *corev1.ConfigMap) { c.Labels, c.OwnerReferences = nil, nil })
		o.rest()
		o.took()
		allow()
		markDeleted(o.apiServer, "web")
		o.rest()
		got := o.took()
		for _, want := range []string{"delete serviceaccounts/web-sa", "delete configmaps/web-runconfig"} {
			if !slices.Contains(got, want) {
				t.Errorf("writes %v, want %s", got, want)
			}
		}
	})
}

// An object in the way of a child that no informer shows is read again for an edit of the MCPServer, whatever is left of the wait.
func TestEditLooksAgainAtWhatIsInTheWay(t *testing.T) {
	foreign := &corev1.Service{}
	foreign.Name, foreign.Namespace = "mcp-web", "shop"
	operate(t, []runtime.Object{newServer("web"), foreign}, nil, func(t *testing.T, o *operating) {
		<-time.After(time.Hour + 7*time.Minute) // The waits have come to ten minutes, and one has just begun.
		o.reads()
		o.annotate("web", "example.com/note", "1")
		if reads := o.reads(); !slices.Equal(reads, []string{"get services"}) {
			t.Errorf("reads %v for one edit", reads)
		}
		o.queue.Add(key("web"))
		o.rest()
		if reads := o.reads(); len(reads) > 0 {
			t.Errorf("reads %v without an edit", reads)
		}
		remove[*corev1.Service](o.apiServer, "mcp-web")
		o.annotate("web", "example.com/note", "2")
		o.rest()
		if service, ok := get[*corev1.Service](o.apiServer, "mcp-web"); !ok || service.Labels[v1beta1.LabelToolHive] != "true" {
			t.Errorf("the Service is not created: %t", ok)
		}
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
		}
	})
}

// A child that no informer shows and that changes just before its deletion does not hold up the deletion of its MCPServer.
func TestDeletionOfWhatNoInformerShowsLosesARace(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.forbidApplies()
		change(o.apiServer, "web-sa", func(account *corev1.ServiceAccount) { account.Labels, account.OwnerReferences = nil, nil })
		<-time.After(time.Hour)
		var raced atomic.Bool
		o.before.set(func(w write) error {
			if w.String() == "delete serviceaccounts/web-sa" && !raced.Swap(true) {
				change(o.apiServer, "web-sa", func(account *corev1.ServiceAccount) { account.Annotations["note"] = "1" })
			}
			return nil
		})
		markDeleted(o.apiServer, "web")
		o.rest()
		if !raced.Load() || exists[*corev1.ServiceAccount](o.apiServer, "web-sa") || exists[*v1beta1.MCPServer](o.apiServer, "web") {
			t.Errorf("raced %t, the ServiceAccount is there: %t, and the MCPServer: %t", raced.Load(),
				exists[*corev1.ServiceAccount](o.apiServer, "web-sa"), exists[*v1beta1.MCPServer](o.apiServer, "web"))
		}
	})
}

// A conflict over the label that a child is selected by ends by an event that nobody sees. It is found out by looking again.
func TestConflictOverTheSelectingLabelEnds(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		contest := func(labels map[string]string) {
			t.Helper()
			config := appsv1ac.StatefulSet("web", "shop").WithLabels(labels)
			o.took() // Before it, as the answer to it may come at once.
			o.reads()
			if _, err := o.core.AppsV1().StatefulSets("shop").Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: "helm", Force: true}); err != nil {
				t.Fatal(err)
			}
		}
		contest(map[string]string{v1beta1.LabelToolHive: "no"})
		o.rest()
		o.expect([]string{
			"apply StatefulSet/web freehold-backend", "apply StatefulSet/web freehold-backend", "apply MCPServer/web/status freehold-status",
		}, "the creation and the conflict")
		if status, reason, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || reason != "FieldManagerConflict" {
			t.Errorf("FieldsOwned is %s because of %s", status, reason)
		}
		<-time.After(time.Hour)
		o.rest()
		o.expect(nil, "the conflict stands")
		if n := len(o.reads()); n < 6 || n > 16 {
			t.Errorf("it was read %d times in an hour", n)
		}

		contest(nil)
		<-time.After(apply.LongestWait)
		o.rest()
		o.expect([]string{"apply StatefulSet/web freehold-backend", "apply MCPServer/web/status freehold-status"}, "it was given up")
		set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
		if set.Labels[v1beta1.LabelToolHive] != "true" {
			t.Errorf("labels %v", set.Labels)
		}
		o.reads()
		<-time.After(time.Hour)
		o.rest()
		o.expect(nil, "the label is back")
		if reads := o.reads(); len(reads) > 0 {
			t.Errorf("reads in peace: %v", reads)
		}
	})
}

// Nothing stays in memory of the names of ConfigMaps that an MCPServer no longer wants, nor of the MCPServer when it is gone.
func TestNamesOfEarlierContentAreForgotten(t *testing.T) {
	operate(t, nil, nil, func(t *testing.T, o *operating) {
		o.before.set(func(w write) error {
			if w.kind == managers.ConfigMap.Kind && w.verb == "apply" {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, errors.New("exceeded quota"))
			}
			return nil
		})
		for _, object := range byToolHive("web", "5") {
			o.add(object)
		}
		<-time.After(time.Minute)
		size := func() int {
			o.rest()
			return len(o.states.get(key("web")).unlabelled)
		}
		before := size()
		if before == 0 {
			t.Fatal("neither the takeover nor a refusal has looked at a name")
		}
		for i := range int32(3) {
			change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.MCPPort = 9000 + i })
			<-time.After(time.Minute)
			o.rest()
		}
		if now := size(); now != before {
			t.Errorf("%d entries after three changes, want %d", now, before)
		}
		remove[*v1beta1.MCPServer](o.apiServer, "web")
		o.rest()
		if now := size(); now != 0 {
			t.Errorf("%d entries after the MCPServer is gone", now)
		}
	})
}

// ToolHive's rights have no labels. They are taken over like the rest, in the same order, and labelled.
func TestATakeoverLabelsWhatHasNoLabels(t *testing.T) {
	objects := byToolHive("web", "5")
	owner := metav1.OwnerReference{
		APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.MCPServerKind, Name: "web", UID: objects[0].(*v1beta1.MCPServer).UID, Controller: new(true),
	}
	meta := func(version, fields string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: "web-proxy-runner", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{owner},
			ManagedFields: []metav1.ManagedFieldsEntry{entry(managers.ToolHiveOperator, metav1.ManagedFieldsOperationUpdate, version, fields)},
		}
	}
	role := &rbacv1.Role{
		ObjectMeta: meta("rbac.authorization.k8s.io/v1", `{"f:rules":{}}`),
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"*"}}},
	}
	account := &corev1.ServiceAccount{ObjectMeta: meta("v1", `{"f:metadata":{"f:ownerReferences":{}}}`)}
	operate(t, append(objects, role, account), nil, func(t *testing.T, o *operating) {
		taken := func(object metav1.Object) bool {
			return ownership.ApplyEntry(object, managers.Access, "") != nil && object.GetLabels()[v1beta1.LabelToolHive] == "true"
		}
		now, _ := get[*rbacv1.Role](o.apiServer, "web-proxy-runner")
		if taken(now) {
			t.Error("the Role was taken while a proxy of ToolHive's is there")
		}
		if _, reason, message := o.condition("web", v1beta1.ConditionTakenOver); reason != "TakingOver" {
			t.Errorf("TakenOver because of %s: %s", reason, message)
		}
		o.replaceProxy("web")
		proxyReady(o.apiServer, "web")
		o.rest()
		now, _ = get[*rbacv1.Role](o.apiServer, "web-proxy-runner")
		its, _ := get[*corev1.ServiceAccount](o.apiServer, "web-proxy-runner")
		if !taken(now) || !taken(its) {
			t.Errorf("not taken: %v, %v", now.ManagedFields, its.ManagedFields)
		}
		if status, reason, message := o.condition("web", v1beta1.ConditionTakenOver); status != metav1.ConditionTrue {
			t.Errorf("TakenOver is %s because of %s: %s", status, reason, message)
		}
	})
}
