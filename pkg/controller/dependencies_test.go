// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

const (
	permitAll = "permit(principal, action, resource);"
	forbidAll = "forbid(principal, action, resource);"
)

// withPolicies is an edit that sets an inline policy.
func withPolicies(policies ...string) func(*v1beta1.MCPServer) {
	return func(server *v1beta1.MCPServer) {
		server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
			Type: v1beta1.AuthzConfigTypeInline, Inline: &v1beta1.InlineAuthzConfig{Policies: policies},
		}
	}
}

func guarded(name string, policies ...string) *v1beta1.MCPServer {
	server := newServer(name)
	withPolicies(policies...)(server)
	return server
}

// read returns what a pod of the proxy would read: the content of the ConfigMaps that the Deployment's template names.
func (o *operating) read(name string) string {
	o.t.Helper()
	deployment, ok := get[*appsv1.Deployment](o.apiServer, name)
	if !ok {
		return "no Deployment"
	}
	var texts []string
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		config, ok := get[*corev1.ConfigMap](o.apiServer, volume.ConfigMap.Name)
		if !ok {
			o.t.Errorf("the template names ConfigMap %s, which does not exist", volume.ConfigMap.Name)
			continue
		}
		texts = append(texts, config.Data[runconfig.Key]+config.Data[runconfig.AuthzKey])
	}
	return strings.Join(texts, "\n")
}

// pins returns the UIDs of the ConfigMaps that the Deployment's template stands for.
func (o *operating) pins(name string) string {
	o.t.Helper()
	deployment, _ := get[*appsv1.Deployment](o.apiServer, name)
	return deployment.Spec.Template.Annotations[v1beta1.AnnotationConfigUIDs]
}

// An authorization change whose ConfigMaps are refused reaches no pod, in either order: the template stays as it is, for
// every class of refusal and as long as it stands; what depends on nothing refused goes on.
func TestTheProxyWaitsForWhatItDependsOn(t *testing.T) {
	gr := schema.GroupResource{Resource: "things"}
	for name, refusal := range map[string]error{
		"overload":         apierrors.NewServiceUnavailable("down"),
		"too many":         apierrors.NewTooManyRequests("wait", 0),
		"forbidden":        apierrors.NewForbidden(gr, "x", errors.New("not now")),
		"invalid":          apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "x", nil),
		"lost race":        apierrors.NewConflict(gr, "x", errors.New("moved")),
		"broken":           errors.New("connection reset by peer"),
		"namespace is bad": apierrors.NewBadRequest("no"),
	} {
		for _, kind := range []string{"ConfigMap/web-runconfig", "ConfigMap/web-authz-inline", "Role/web-proxy-runner"} {
			t.Run(name+" of "+kind, func(t *testing.T) {
				operate(t, []runtime.Object{guarded("web", permitAll)}, nil, func(t *testing.T, o *operating) {
					o.becomeReady("web")
					var allowed atomic.Bool
					o.before.set(func(w write) error {
						if !allowed.Load() && strings.HasPrefix(w.String(), "apply "+kind) {
							return refusal
						}
						return nil
					})
					if kind == "Role/web-proxy-runner" {
						// It is as it is to be, and would not be written.
						change(o.apiServer, "web-proxy-runner", func(r *rbacv1.Role) { r.OwnerReferences = nil })
						o.rest()
						o.took()
					}
					before, pins := o.read("web"), o.pins("web")
					change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
						withPolicies(permitAll, forbidAll)(server)
						server.Spec.Image = "example.com/web:2"
					})
					<-time.After(time.Hour)
					o.rest()
					got := o.took()
					if slices.Contains(got, "apply Deployment/web freehold-proxy") || o.read("web") != before || o.pins("web") != pins {
						t.Errorf("the proxy was written while %s was refused: %v", kind, slices.Compact(got))
					}
					if !slices.Contains(got, "apply StatefulSet/web freehold-backend") {
						t.Errorf("the backend waits as well: %v", slices.Compact(got))
					}
					server := o.server("web")
					if ready := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionReady); ready.Status == metav1.ConditionTrue &&
						ready.ObservedGeneration == server.Generation {
						t.Errorf("it is Ready: %s", ready.Message)
					}
					allowed.Store(true)
					// Whatever wakes it; when a refusal is tried again by itself is for other tests.
					change(o.apiServer, "web", withPolicies(forbidAll))
					change(o.apiServer, "web-proxy-runner", func(r *rbacv1.Role) { r.Labels["a"] = "b" })
					<-time.After(time.Hour)
					o.rest()
					if read := o.read("web"); !strings.Contains(read, "forbid") {
						t.Errorf("it reads %s", read)
					}
				})
			})
		}
	}
}

// What another field manager holds of the rights of the proxy holds its template back, but not its number of pods.
func TestReplicasOfAHeldProxyAreWritten(t *testing.T) {
	operate(t, []runtime.Object{guarded("web", permitAll)}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web-proxy-runner", func(r *rbacv1.Role) { r.Rules[0].Verbs = []string{"*"} })
		o.rest()
		o.took()
		three := int32(3)
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			withPolicies(forbidAll)(server)
			server.Spec.Replicas = &three
		})
		o.rest()
		got := o.took()
		if slices.Contains(got, "apply Deployment/web freehold-proxy") || strings.Contains(o.read("web"), "forbid") {
			t.Errorf("the proxy was written without its rights: %v", got)
		}
		if !slices.Contains(got, "apply Deployment/web freehold-proxy-replicas") {
			t.Errorf("writes %v, without the number of pods", got)
		}
		// As long as that stands it costs nothing.
		<-time.After(time.Hour)
		o.rest()
		o.expect(nil, "a conflict that stands")
		o.annotate("web", v1beta1.AnnotationTake, "role.rbac.authorization.k8s.io/web-proxy-runner:.rules")
		o.rest()
		if got := o.took(); !slices.Contains(got, "apply Deployment/web freehold-proxy") || !strings.Contains(o.read("web"), "forbid") {
			t.Errorf("it was not written after its rights were: %v", got)
		}
	})
}

// The backend's pods need the ServiceAccount that is made for them.
func TestTheBackendWaitsForItsServiceAccount(t *testing.T) {
	mine := "mine"
	server := newServer("web")
	server.Spec.ServiceAccount = &mine
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		var allowed atomic.Bool
		o.before.set(func(w write) error {
			if !allowed.Load() && w.kind == "ServiceAccount" && w.name == "web-sa" {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, fmt.Errorf("not now"))
			}
			return nil
		})
		account := func() string {
			set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
			return set.Spec.Template.Spec.ServiceAccountName
		}
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.ServiceAccount = nil })
		o.rest()
		if got := account(); got != "mine" {
			t.Errorf("the template names %q, which does not exist", got)
		}
		allowed.Store(true)
		<-time.After(time.Hour)
		o.rest()
		if got := account(); got != "web-sa" {
			t.Errorf("the template names %q", got)
		}
	})
}

// A ConfigMap that was deleted and made anew, by whomever, replaces the pods: what they have read is always known.
func TestAConfigMapMadeAnewReplacesTheProxy(t *testing.T) {
	for name, base := range map[string]string{"RunConfig": "web-runconfig", "policy": "web-authz-inline"} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{guarded("web", permitAll)}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				config, _ := get[*corev1.ConfigMap](o.apiServer, o.configNamed(base))
				before := o.pins("web")
				if !slices.Contains(strings.Fields(before), string(config.UID)) || len(strings.Fields(before)) != 2 {
					t.Fatalf("the template stands for %q, the ConfigMap is %s", before, config.UID)
				}
				// The same content, from a copy that has neither claims nor owner.
				again := config.DeepCopy()
				again.UID, again.ManagedFields = "", nil
				o.stop()
				if err := <-o.ended; err != nil {
					t.Errorf("the controller ended with %v", err)
				}
				remove[*corev1.ConfigMap](o.apiServer, config.Name)
				o.add(again)
				o.took()
				next := start(t, o.apiServer, nil)
				o.stop, o.ended = next.stop, next.ended
				next.rest()
				if after := o.pins("web"); after == before || !slices.Contains(strings.Fields(after), string(again.UID)) {
					t.Errorf("the template stands for %q, before for %q; the ConfigMap is %s", after, before, again.UID)
				}
				if now, _ := get[*corev1.ConfigMap](o.apiServer, config.Name); now.UID != again.UID || len(now.ManagedFields) == 0 {
					t.Errorf("the ConfigMap is %s with claims %v", now.UID, now.ManagedFields)
				}
				next.rest()
				next.took()
				next.rest()
				next.expect(nil, "all is as it was")
			})
		})
	}
}

// Whatever of its template is left to others, a proxy is replaced for another policy, and reads that.
func TestAProxyWhoseTemplateIsYieldedFollowsItsPolicy(t *testing.T) {
	for _, yielded := range []string{
		"deployment.apps/web:.spec.template.metadata.annotations",
		"deployment.apps/web:.spec.template.spec.volumes",
		`deployment.apps/web:.spec.template.spec.containers[name="toolhive"]`,
		"deployment.apps/web:.spec.template",
		"deployment.apps/web:.spec",
	} {
		t.Run(yielded, func(t *testing.T) {
			operate(t, []runtime.Object{guarded("web", permitAll)}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.annotate("web", v1beta1.AnnotationYield, yielded)
				o.rest()
				o.took()
				before, _ := get[*appsv1.Deployment](o.apiServer, "web")
				change(o.apiServer, "web", withPolicies(forbidAll))
				o.rest()
				after, _ := get[*appsv1.Deployment](o.apiServer, "web")
				if cmp.Equal(before.Spec.Template.Annotations, after.Spec.Template.Annotations) || !strings.Contains(o.read("web"), "forbid") {
					t.Errorf("it reads %s, annotations %v", o.read("web"), after.Spec.Template.Annotations)
				}
				if after.Spec.Template.Spec.ServiceAccountName != "web-proxy-runner" {
					t.Errorf("its ServiceAccount is %q", after.Spec.Template.Spec.ServiceAccountName)
				}
				o.rest()
				o.took()
				o.rest()
				o.expect(nil, "all is done")
			})
		})
	}
}
