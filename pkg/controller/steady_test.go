// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

func TestNothingIsWrittenWhenNothingHappens(t *testing.T) {
	var servers []runtime.Object
	for i := range 5 {
		servers = append(servers, newServer(fmt.Sprint("web-", i)))
	}
	resync := func(c *Config) { c.Resync = time.Minute }
	operate(t, servers, resync, func(_ *testing.T, o *operating) {
		for i := range servers {
			o.becomeReady(fmt.Sprint("web-", i))
		}
		<-time.After(10 * time.Minute)
		o.rest()
		o.expect(nil, "ten resyncs")
	})
}

func TestNothingIsWrittenAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		first := start(t, s, nil)
		first.rest()
		first.becomeReady("web")
		change(s, "web", func(server *v1beta1.MCPServer) { server.Spec.Args = []string{"--flag"} })
		first.rest()
		first.took()
		first.end()

		second := start(t, s, nil)
		defer second.end()
		second.rest()
		second.expect(nil, "a restart")
		change(s, "web", func(server *v1beta1.MCPServer) { server.Spec.Args = nil })
		second.rest()
		if len(second.took()) == 0 {
			t.Error("nothing was written after a restart, nor for a change: the controller does not work")
		}
	})
}

// Foreign fields cause no request, and stay.
func TestForeignFieldsAreLeftAlone(t *testing.T) {
	server := newServer("web")
	server.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		theirs := metav1.ApplyOptions{FieldManager: "team"}
		label := map[string]string{"team": "a"}
		o.took()
		if _, err := o.core.AppsV1().Deployments("shop").Apply(t.Context(),
			appsv1ac.Deployment("web", "shop").WithLabels(label).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(3)), theirs); err != nil {
			t.Fatal(err)
		}
		if _, err := o.core.CoreV1().ConfigMaps("shop").Apply(t.Context(),
			corev1ac.ConfigMap(o.configNamed("web-runconfig"), "shop").WithLabels(label), theirs); err != nil {
			t.Fatal(err)
		}
		proxyReady(o.apiServer, "web")
		o.rest()
		o.expect(nil, "foreign labels and replicas")

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 9090 })
		o.rest()
		if len(o.took()) == 0 {
			t.Fatal("nothing was written for another port")
		}
		deployment, _ := get[*appsv1.Deployment](o.apiServer, "web")
		if deployment.Labels["team"] != "a" || deployment.Spec.Replicas == nil || *deployment.Spec.Replicas != 3 {
			t.Errorf("labels %v and replicas %v, want theirs among them", deployment.Labels, deployment.Spec.Replicas)
		}
	})
}

func TestDeletedChildrenComeBack(t *testing.T) {
	for kind, test := range map[string]struct {
		remove func(*apiServer)
		want   []string
	}{
		"Deployment": {
			func(s *apiServer) { remove[*appsv1.Deployment](s, "web") },
			[]string{"apply Deployment/web freehold-proxy", "apply MCPServer/web/status freehold-status"},
		},
		"StatefulSet": {
			func(s *apiServer) { remove[*appsv1.StatefulSet](s, "web") },
			[]string{"apply StatefulSet/web freehold-backend", "apply MCPServer/web/status freehold-status"},
		},
		"Service":   {func(s *apiServer) { remove[*corev1.Service](s, "mcp-web-proxy") }, []string{"apply Service/mcp-web-proxy freehold-service"}},
		"ConfigMap": {func(s *apiServer) { remove[*corev1.ConfigMap](s, s.configNamed("web-runconfig")) }, []string{"apply ConfigMap/web-runconfig freehold-runconfig", "apply Deployment/web freehold-proxy"}},
		"account":   {func(s *apiServer) { remove[*corev1.ServiceAccount](s, "web-sa") }, []string{"apply ServiceAccount/web-sa freehold-access"}},
	} {
		t.Run(kind, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
				o.becomeReady("web")
				proxy, _ := get[*appsv1.Deployment](o.apiServer, "web")
				change(o.apiServer, proxyPod("web", nil).Name, func(pod *corev1.Pod) { pod.Spec.Volumes = proxy.Spec.Template.Spec.Volumes })
				o.rest()
				test.remove(o.apiServer)
				o.rest()
				o.expect(test.want, "a child was deleted")
			})
		})
	}
}

// What somebody else took away of ours comes back; it is nobody's then, and no conflict.
func TestRemovedFieldsComeBack(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "mcp-web-proxy", func(service *corev1.Service) { delete(service.Labels, "app") })
		o.rest()
		o.expect([]string{"apply Service/mcp-web-proxy freehold-service"}, "a label was removed")
		if service, _ := get[*corev1.Service](o.apiServer, "mcp-web-proxy"); service.Labels["app"] == "" {
			t.Errorf("labels %v, the one is not back", service.Labels)
		}
	})
}

// An edit costs one apply for each child whose content changes, one for the status, and one more when what it asks for
// serves.
func TestEditsWriteWhatChanges(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*v1beta1.MCPServer)
		want []string
	}{
		"an argument of the server": {
			func(s *v1beta1.MCPServer) { s.Spec.Args = []string{"--verbose"} },
			[]string{"apply StatefulSet/web freehold-backend"},
		},
		"an annotation of the proxy's Service": {
			func(s *v1beta1.MCPServer) {
				s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{
					ProxyService: &v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{"a": "b"}},
				}
			},
			[]string{"apply Service/mcp-web-proxy freehold-service"},
		},
		"the number of proxies": {
			func(s *v1beta1.MCPServer) { s.Spec.Replicas = new(int32(2)) },
			[]string{"apply Deployment/web freehold-proxy-replicas"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				change(o.apiServer, "web", test.edit)
				o.rest()
				var children []string
				statuses := 0
				for _, w := range o.took() {
					switch w {
					case "apply MCPServer/web/status freehold-status":
						statuses++
					case "apply ConfigMap/web-runconfig freehold-runconfig", "apply Deployment/web freehold-proxy":
						// The RunConfig holds much of the spec; which parts is for the tests of rendering.
					default:
						children = append(children, w)
					}
				}
				if len(children) != len(test.want) || children[0] != test.want[0] {
					t.Errorf("writes %v, want %v", children, test.want)
				}
				if statuses != 1 {
					t.Errorf("%d writes of the status, want 1", statuses)
				}
				backendReady(o.apiServer, "web")
				proxyReady(o.apiServer, "web")
				o.rest()
				if serves := meta.IsStatusConditionTrue(o.server("web").Status.Conditions, v1beta1.ConditionReady); !serves {
					t.Errorf("it is not Ready: %+v", o.server("web").Status)
				}
				// The RunConfig of before is in use no more.
				writes := slices.DeleteFunc(o.took(), func(w string) bool { return w == "delete configmaps/web-runconfig" })
				if len(writes) > 1 {
					t.Errorf("writes %v when it serves, want one of the status at most", writes)
				}
			})
		})
	}
}
