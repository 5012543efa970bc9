// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
)

func stdioServer(name string) *v1beta1.MCPServer {
	server := newServer(name)
	server.Spec.Transport = v1beta1.TransportStdio
	return server
}

// The proxy of a server with transport stdio is not made before it is known what its runner attaches to.
func TestProxyWaitsForItsProcess(t *testing.T) {
	operate(t, []runtime.Object{stdioServer("web")}, nil, func(t *testing.T, o *operating) {
		backendReady(o.apiServer, "web")
		o.rest()
		if deployment, ok := get[*appsv1.Deployment](o.apiServer, "web"); ok {
			t.Fatalf("there is a proxy, and nothing to attach it to: %v", deployment.Spec.Template.Annotations)
		}
		o.addBackendPod(o.server("web"), "first")
		o.rest()
		o.attached("first/0")
	})
}

// The proxy is rolled out for a process that is ready and another one, and for nothing else.
func TestProxyFollowsItsProcess(t *testing.T) {
	operate(t, []runtime.Object{stdioServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.attached("first/0")

		roll := []string{"apply Deployment/web freehold-proxy"}
		for _, step := range []struct {
			name   string
			do     func()
			want   string
			writes []string
		}{
			{"the server has ended", func() { o.changePod(func(c *corev1.ContainerStatus) { c.Ready = false }) }, "first/0", nil},
			{"it was started again", func() {
				o.changePod(func(c *corev1.ContainerStatus) { c.Ready, c.RestartCount = true, 1 })
			}, "first/1", roll},
			{"its pod is gone", func() { remove[*corev1.Pod](o.apiServer, "web-0") }, "first/1", nil},
			{"the proxy itself changes meanwhile", func() {
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
					server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
						PodTemplateMetadataOverrides: &v1beta1.ResourceMetadataOverrides{Labels: map[string]string{"note": "x"}},
					}}
				})
			}, "first/1", roll},
			{"there is another pod", func() { o.addBackendPod(o.server("web"), "second") }, "second/0", roll},
			{"that is on its way out", func() {
				change(o.apiServer, "web-0", func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
			}, "second/0", nil},
		} {
			step.do()
			o.rest()
			o.attached(step.want)
			if diff := cmp.Diff(step.writes, o.toChildren(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: writes (-want +got):\n%s", step.name, diff)
			}
		}
	})
}

// A server that speaks HTTP is not attached to anything.
func TestProxyOfHTTPIsNotAttached(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		remove[*corev1.Pod](o.apiServer, "web-0")
		o.addBackendPod(o.server("web"), "second")
		o.rest()
		// The status may tell of the moment without a pod.
		if writes := o.toChildren(); len(writes) > 0 {
			t.Errorf("another pod of the backend: writes %v", writes)
		}
	})
}

func (o *operating) changePod(edit func(server *corev1.ContainerStatus)) {
	o.t.Helper()
	change(o.apiServer, "web-0", func(pod *corev1.Pod) { edit(&pod.Status.ContainerStatuses[0]) })
}

// attached checks what the proxy's pods are attached to.
func (o *operating) attached(want string) {
	o.t.Helper()
	deployment, ok := get[*appsv1.Deployment](o.apiServer, "web")
	if !ok {
		o.t.Fatal("there is no proxy")
	}
	if got := deployment.Spec.Template.Annotations[v1beta1.AnnotationAttachedTo]; got != want {
		o.t.Errorf("the proxy is attached to %q, want %q", got, want)
	}
}

// A server process that has ended takes the proxy along although its Deployment is not written: its pod is deleted, once, and the next
// one attaches to the process that there is.
func TestHeldProxyFollowsItsProcess(t *testing.T) {
	server := stdioServer("web")
	server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "tools"}
	for name, hold := range map[string]func(o *operating){
		"a reference cannot be used": func(o *operating) { remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp") },
		"the spec cannot be used":    func(o *operating) { change(o.apiServer, "web", makeUnrenderable) },
		"the proxy is in conflict": func(o *operating) {
			changeAs(o.apiServer, "", "helm", "web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{server.DeepCopy(), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				hold(o)
				o.rest()
				if deleted := o.deleted(); len(deleted) > 0 {
					t.Fatalf("%v deleted, and the process has not ended", deleted)
				}
				o.changePod(func(c *corev1.ContainerStatus) { c.Ready = false })
				o.rest()
				if deleted := o.deleted(); len(deleted) > 0 {
					t.Errorf("%v deleted, and there is no other process", deleted)
				}
				o.changePod(func(c *corev1.ContainerStatus) { c.Ready, c.RestartCount = true, 1 })
				o.rest()
				if diff := cmp.Diff([]string{proxyPod("web", nil).Name}, o.deleted()); diff != "" {
					t.Errorf("deleted (-want +got):\n%s", diff)
				}
				o.attached("first/0")
				o.addProxyPod("web", proxyPod("web", render.ProxySelector("web")))
				o.rest()
				change(o.apiServer, "web", func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
				<-time.After(time.Hour)
				if deleted := o.deleted(); len(deleted) > 0 {
					t.Errorf("%v deleted as well", deleted)
				}
			})
		})
	}
}

// The pod that follows a deleted one is younger than the process, in seconds, so that an operator that starts later leaves it alone.
func TestStrandedProxyIsReplacedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := stdioServer("web")
		server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "tools"}
		s := newAPIServer(t, server, issuer("https://idp.example.com"))
		o := start(t, s, nil)
		o.rest()
		o.becomeReady("web")
		remove[*v1beta1.MCPOIDCConfig](s, "corp")
		o.rest()
		if deleted := o.deleted(); len(deleted) > 0 {
			t.Fatalf("%v deleted, and the process has not ended", deleted)
		}
		<-time.After(time.Until(time.Now().Truncate(time.Second).Add(1100 * time.Millisecond)))
		began := metav1.NewTime(time.Now().Truncate(time.Second))
		o.changePod(func(c *corev1.ContainerStatus) {
			c.RestartCount, c.State.Running = 1, &corev1.ContainerStateRunning{StartedAt: began}
		})
		synctest.Wait()
		if deleted := o.deleted(); len(deleted) > 0 {
			t.Errorf("%v deleted in the second in which the process began", deleted)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if deleted := o.deleted(); len(deleted) != 1 {
			t.Errorf("%v deleted, want the stranded pod", deleted)
		}
		next := proxyPod("web", render.ProxySelector("web"))
		next.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
		o.addProxyPod("web", next)
		o.rest()
		o.end()
		o = start(t, s, nil)
		defer o.end()
		o.rest()
		if deleted := o.deleted(); len(deleted) > 0 {
			t.Errorf("%v deleted after a restart of the operator", deleted)
		}
	})
}
