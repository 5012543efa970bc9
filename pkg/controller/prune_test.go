// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// roll does what the Deployment's controller does with a new template: a ReplicaSet and a pod of it come.
func (o *operating) roll(revision string) {
	o.t.Helper()
	deployment, _ := get[*appsv1.Deployment](o.apiServer, "web")
	name := "web-" + revision
	o.add(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", UID: types.UID(name), Labels: render.ProxySelector("web"),
			OwnerReferences: controlled("Deployment", "web", deployment.UID), Annotations: map[string]string{observed.AnnotationRevision: revision},
		},
		Spec: appsv1.ReplicaSetSpec{Template: *deployment.Spec.Template.DeepCopy()},
	})
	pod := proxyPod("web", render.ProxySelector("web"))
	pod.Name, pod.OwnerReferences, pod.Spec = name+"-x", controlled("ReplicaSet", name, types.UID(name)), *deployment.Spec.Template.Spec.DeepCopy()
	o.add(pod)
	change(o.apiServer, "web", func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, observed.AnnotationRevision, revision)
	})
	o.rest()
	proxyReady(o.apiServer, "web")
	o.rest()
}

// serveFirstRevision has the backend serve, and the first ReplicaSet of the proxy.
func (o *operating) serveFirstRevision() {
	o.t.Helper()
	backendReady(o.apiServer, "web")
	o.addBackendPod(o.server("web"), "first")
	o.rest()
	o.roll("1")
}

// policies returns the policies that there are ConfigMaps of.
func (o *operating) policies() (found []string) {
	o.t.Helper()
	for _, config := range o.configs() {
		for _, word := range []string{"permit", "forbid", "when"} {
			if strings.Contains(config.Name, "-authz-inline") && strings.Contains(config.Data["authz.json"], word+" ") {
				found = append(found, word)
			}
		}
	}
	slices.Sort(found)
	return found
}

func (o *operating) expectPolicies(why string, want ...string) {
	o.t.Helper()
	if diff := cmp.Diff(want, o.policies()); diff != "" {
		o.t.Errorf("policies, %s (-want +got):\n%s", why, diff)
	}
}

// policy is one that a word tells from others.
func policy(word string) func(*v1beta1.MCPServer) {
	if word == "when" {
		return withPolicies("permit(principal, action, resource) when { true };")
	}
	return withPolicies(word + " (principal, action, resource);")
}

// A policy of an earlier spec stays as long as a template, a ReplicaSet that the user may go back to, or a pod names it.
func TestConfigMapsStayWhileTheyAreInUse(t *testing.T) {
	server := newServer("web")
	policy("permit")(server)
	operate(t, []runtime.Object{server}, nil, func(_ *testing.T, o *operating) {
		o.serveFirstRevision()
		change(o.apiServer, "web", policy("forbid"))
		o.rest()
		o.expectPolicies("the Deployment is rolling", "forbid", "permit")
		o.roll("2")
		remove[*appsv1.ReplicaSet](o.apiServer, "web-1")
		o.rest()
		o.expectPolicies("a pod of a ReplicaSet that is gone reads it", "forbid", "permit")
		remove[*corev1.Pod](o.apiServer, "web-1-x")
		o.rest()
		o.expectPolicies("nothing is left of the first revision", "forbid")

		change(o.apiServer, "web", policy("permit"))
		o.rest()
		o.roll("3")
		remove[*corev1.Pod](o.apiServer, "web-2-x")
		o.rest()
		o.expectPolicies("the user may go back to the second revision", "forbid", "permit")
		remove[*appsv1.ReplicaSet](o.apiServer, "web-2")
		o.rest()
		o.expectPolicies("nothing is left of the second revision", "permit")
		o.took()
		o.rest()
		o.expect(nil, "all is done")
	})
}

// A ConfigMap that was deleted, and that the cache still shows, is none: a proxy that is to read it again waits for a new one.
func TestConfigMapThatIsWantedAgainIsMadeAgain(t *testing.T) {
	server := newServer("web")
	policy("permit")(server)
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, server)
		o := start(t, s, nil)
		defer o.end()
		o.rest()
		o.becomeReady("web")
		first := o.configNamed("web-authz-inline")
		change(s, "web", policy("forbid"))
		o.rest()
		s.hold("configmaps", true)
		proxyReady(s, "web") // Nothing names the first policy any more.
		o.rest()
		if exists[*corev1.ConfigMap](s, first) {
			t.Fatalf("ConfigMap %s was not pruned", first)
		}
		o.before.set(func(w write) error {
			if w.kind == "Deployment" && w.manager == managers.Proxy && !exists[*corev1.ConfigMap](s, first) {
				t.Errorf("the proxy is written while ConfigMap %s does not exist", first)
			}
			return nil
		})
		change(s, "web", policy("permit"))
		o.rest()
		s.hold("configmaps", false)
		o.rest()
		if proxy, _ := get[*appsv1.Deployment](s, "web"); !slices.Contains(workload.ConfigMapsOf(&proxy.Spec.Template.Spec), first) || !exists[*corev1.ConfigMap](s, first) {
			t.Errorf("the proxy does not read %s at last", first)
		}
	})
}

// What a template that is contested, held back or not known for sure may name is not deleted.
func TestConfigMapsStayWhileTheProxyIsNotWritten(t *testing.T) {
	for name, hinder := range map[string]func(o *operating){
		"contested": func(o *operating) {
			change(o.apiServer, "web", func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = "example.com/other"
				d.Spec.Template.Spec.ServiceAccountName = "other"
			})
		},
		"refused": func(o *operating) {
			o.before.set(func(w write) error {
				if w.kind == "Deployment" {
					return context.DeadlineExceeded
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			policy("permit")(server)
			operate(t, []runtime.Object{server}, nil, func(_ *testing.T, o *operating) {
				o.becomeReady("web")
				hinder(o)
				o.rest()
				change(o.apiServer, "web", policy("forbid"))
				o.rest()
				change(o.apiServer, "web", policy("when"))
				o.rest()
				o.expectPolicies("the Deployment names the first", "forbid", "permit", "when")
			})
		})
	}
}

// Before the controller of Deployments has seen a template it may still make pods of the one before.
func TestConfigMapsStayUntilTheTemplateIsObserved(t *testing.T) {
	server := newServer("web")
	policy("permit")(server)
	operate(t, []runtime.Object{server}, nil, func(_ *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web", policy("forbid"))
		o.rest()
		o.expectPolicies("the template is new", "forbid", "permit")
		proxyReady(o.apiServer, "web")
		o.rest()
		o.expectPolicies("the template was observed", "forbid")
	})
}

// ToolHive, and Freehold before, gave the ConfigMaps fixed names. They go when nothing uses them.
func TestConfigMapsOfFixedNamesArePruned(t *testing.T) {
	server := newServer("web")
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		owner := []metav1.OwnerReference{{APIVersion: "toolhive.stacklok.dev/v1beta1", Kind: "MCPServer", Name: "web", UID: server.UID, Controller: new(true)}}
		ofRunConfig := map[string]string{v1beta1.LabelComponent: "run-config", v1beta1.LabelMCPServer: "web"}
		for name, labels := range map[string]map[string]string{"web-runconfig": ofRunConfig, "web-authz-inline": render.ProxySelector("web")} {
			o.add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: labels, OwnerReferences: owner}})
		}
		o.add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web-runconfig-0123456789abcdef", Namespace: "shop"}})
		o.rest()
		deleted := o.took()
		slices.Sort(deleted) // Informers of two selectors show them, each in its own time.
		if diff := cmp.Diff([]string{"delete configmaps/web-authz-inline", "delete configmaps/web-runconfig"}, deleted); diff != "" {
			t.Errorf("two of ours, one of somebody else's: writes (-want +got):\n%s", diff)
		}
	})
}

// The proxy of the earlier transport reaches its backend by the Service, until the last of its pods is gone.
func TestServicesStayForEarlierProxies(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
		backendReady(o.apiServer, "web")
		o.addBackendPod(o.server("web"), "first")
		o.rest()
		o.roll("1")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Transport = v1beta1.TransportStdio })
		o.rest()
		services := func(why string, want bool) {
			o.t.Helper()
			for _, name := range []string{"mcp-web", "mcp-web-headless"} {
				if got := exists[*corev1.Service](o.apiServer, name); got != want {
					o.t.Errorf("%s: Service %s is there: %t", why, name, got)
				}
			}
		}
		services("the template is new", true)
		o.roll("2")
		services("a proxy of the earlier transport runs", true)
		remove[*corev1.Pod](o.apiServer, "web-1-x")
		o.rest()
		services("no proxy of the earlier transport is left", false)
	})
}

// The ServiceAccount of the backend stays for its template and its pods.
func TestServiceAccountStaysWhileItIsInUse(t *testing.T) {
	mine := "mine"
	for name, strategy := range map[string]string{"rolling": "RollingUpdate", "on delete": "OnDelete"} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			server.Annotations = map[string]string{"freehold.dev/backend-update-strategy": strategy, "freehold.dev/backend-rollout": "paused"}
			operate(t, []runtime.Object{server}, nil, func(_ *testing.T, o *operating) {
				o.becomeReady("web")
				change(o.apiServer, "web-0", func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "web-sa" })
				account := func(why string, want bool) {
					o.t.Helper()
					o.rest()
					if got := exists[*corev1.ServiceAccount](o.apiServer, "web-sa"); got != want {
						o.t.Errorf("%s: the ServiceAccount is there: %t", why, got)
					}
				}
				// Contested: the live template stays as it is.
				change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "example.com/other" })
				o.rest()
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.ServiceAccount = &mine })
				account("the workload is contested", true)
				o.annotate("web", "freehold.dev/take", "somebody")
				account("the template is new", true)
				backendReady(o.apiServer, "web")
				account("a pod is of the revision before", true)
				change(o.apiServer, "web-0", func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = mine })
				account("nothing uses it", false)
			})
		})
	}
}

// Behind a partition a pod comes back with the template that it had.
func TestServiceAccountStaysBehindAPartition(t *testing.T) {
	mine := "mine"
	operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.ServiceAccount = &mine })
		o.rest()
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) {
			set.Status = appsv1.StatefulSetStatus{
				ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, CurrentRevision: "1", UpdateRevision: "2",
			}
		})
		remove[*corev1.Pod](o.apiServer, "web-0")
		<-time.After(time.Minute)
		if !exists[*corev1.ServiceAccount](o.apiServer, "web-sa") {
			o.t.Error("the ServiceAccount is gone, and the pod would come back with it")
		}
	})
}

// Configuration that an operator which is ahead has made is not deleted by one that is behind, though it does not ask for
// it: the template that names it may not be in its cache yet. One whose source is forged is.
func TestConfigMapsOfALaterGenerationStay(t *testing.T) {
	for name, behind := range map[string]bool{"this operator is behind": true, "the source is forged": false} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.before.set(func(w write) error {
					if behind && w.manager == managers.Finalizer { // The cache does not show what the API server has.
						return apierrors.NewConflict(schema.GroupResource{}, w.name, errors.New("the object has been modified"))
					}
					return nil
				})
				config, _ := get[*corev1.ConfigMap](o.apiServer, o.configNamed("web-runconfig"))
				config = config.DeepCopy()
				config.Data = map[string]string{"runconfig.json": "{}"}
				later := inventory.RunConfig.ContentName("web", config.Data)
				config.Name, config.UID, config.ManagedFields = later, "later", nil
				config.Annotations[v1beta1.AnnotationSource] = "server-web/2"
				o.add(config)
				o.rest()
				if _, stays := get[*corev1.ConfigMap](o.apiServer, later); stays != behind {
					t.Errorf("ConfigMap %s is there: %v, want %v", later, stays, behind)
				}
			})
		})
	}
}
