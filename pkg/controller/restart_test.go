// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/render"
)

// asked is when a restart is asked for: in the past of what becomeReady leaves behind.
const asked = "2000-01-01T00:00:05Z"

// podOf adds a pod of the proxy, with the request on it that its Deployment bore when it was made.
func podOf(o *operating, name string, created time.Time, request string) {
	o.t.Helper()
	pod := proxyPod("web", maps.Clone(render.ProxySelector("web")))
	pod.Name, pod.CreationTimestamp = name, metav1.NewTime(created)
	if request != "" {
		pod.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: request}
	}
	o.addProxyPod("web", pod)
}

func (o *operating) request(at, strategy string) {
	o.t.Helper()
	change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
		server.Annotations = map[string]string{
			v1beta1.AnnotationRestartedAt: at, v1beta1.AnnotationRestartStrategy: strategy,
		}
	})
	o.rest()
}

// deleted are the pods that were deleted since it was asked last.
func (o *operating) deleted() []string {
	var pods []string
	for _, w := range o.took() {
		if name, ok := strings.CutPrefix(w, "delete pods/"); ok {
			pods = append(pods, name)
		}
	}
	slices.Sort(pods)
	return pods
}

// An immediate restart takes the pods that are older than the request and do not bear it, once the Deployment does.
func TestImmediateRestartDeletesOldPods(t *testing.T) {
	early, at, late := bubbleStart.Add(time.Second), bubbleStart.Add(5*time.Second), bubbleStart.Add(6*time.Second)
	for name, test := range map[string]struct {
		at, strategy string
		want         []string
	}{
		"immediate":            {asked, "immediate", []string{"old", "older"}},
		"rolling":              {asked, "rolling", nil},
		"no strategy":          {asked, "", nil},
		"another strategy":     {asked, "Immediate", nil},
		"no time":              {"now", "immediate", nil},
		"a time that is to be": {"2099-01-01T00:00:00Z", "immediate", nil},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				remove[*corev1.Pod](o.apiServer, proxyPodName)
				podOf(o, "old", early, "")
				podOf(o, "older", early, "1999-01-01T00:00:00Z")
				podOf(o, "just-made", at, "")
				podOf(o, "younger", late, "")
				podOf(o, "new", early, asked)
				o.rest()
				o.took()

				o.request(test.at, test.strategy)
				if diff := cmp.Diff(test.want, o.deleted()); diff != "" {
					t.Errorf("pods that were deleted (-want +got):\n%s", diff)
				}
				d, _ := get[*appsv1.Deployment](o.apiServer, "web")
				wanted := test.at
				if wanted == "now" {
					wanted = ""
				}
				if got := d.Spec.Template.Annotations[v1beta1.AnnotationRestartedAt]; got != wanted {
					t.Errorf("the Deployment bears %q, want %q", got, wanted)
				}
			})
		})
	}
}

// A clock that is ahead of ours asks for a restart in the future. It is carried out then, though nothing happens meanwhile.
func TestImmediateRestartOfTheFutureIsCarriedOutThen(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		remove[*corev1.Pod](o.apiServer, proxyPodName)
		podOf(o, "old", time.Now(), "")
		o.rest()
		o.took()
		at := time.Now().Add(10 * time.Minute).Truncate(time.Second)
		o.request(at.Format(time.RFC3339), "immediate")
		<-time.After(time.Until(at) - time.Second)
		if got := o.deleted(); len(got) > 0 {
			t.Errorf("pods %v were deleted before the time", got)
		}
		<-time.After(time.Second)
		o.rest()
		if got := o.deleted(); !slices.Equal(got, []string{"old"}) {
			t.Errorf("pods %v were deleted, want the old one", got)
		}
	})
}

// While somebody else decides over the pod template there is no rollout, and deleting pods would restart what is old.
func TestImmediateRestartWaitsForTheDeployment(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		remove[*corev1.Pod](o.apiServer, proxyPodName)
		podOf(o, "old", bubbleStart.Add(time.Second), "")
		change(o.apiServer, "web", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = maps.Clone(d.Spec.Template.Annotations)
			d.Spec.Template.Annotations[v1beta1.AnnotationRestartedAt] = "1999-01-01T00:00:00Z"
		})
		o.rest()
		o.took()
		o.request(asked, "immediate")
		if got := o.deleted(); len(got) != 0 {
			t.Errorf("pods %v were deleted", got)
		}
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || !strings.Contains(message, v1beta1.AnnotationRestartedAt) {
			t.Errorf("FieldsOwned is %s: %s", status, message)
		}

		change(o.apiServer, "web", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = maps.Clone(d.Spec.Template.Annotations)
			delete(d.Spec.Template.Annotations, v1beta1.AnnotationRestartedAt)
		})
		o.rest()
		if got := o.deleted(); !slices.Equal(got, []string{"old"}) {
			t.Errorf("pods %v were deleted once the Deployment bears the request, want the old one", got)
		}
	})
}

func TestImmediateRestartIsDecided(t *testing.T) {
	at, err := time.Parse(time.RFC3339, asked)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		strategy, borne string
		now             time.Time
		want            []string
		wait            time.Duration
	}{
		"older pods of earlier requests":  {"immediate", asked, at, []string{"old"}, 0},
		"no request":                      {"", asked, at, nil, 0},
		"the clock of who asks is ahead":  {"immediate", asked, at.Add(-time.Minute), nil, time.Minute},
		"the Deployment does not bear it": {"immediate", "1999-01-01T00:00:00Z", at, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			server.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: asked, v1beta1.AnnotationRestartStrategy: c.strategy}
			objects := []metav1.Object{webProxy(server, func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: c.borne}
			})}
			for name, created := range map[string]time.Time{"old": at.Add(-time.Second), "young": at} {
				pod := proxyPod("web", nil)
				pod.Name, pod.CreationTimestamp = name, metav1.NewTime(created)
				objects = append(objects, pod)
			}
			replaced := proxyPod("web", nil)
			replaced.Name, replaced.Annotations = "new", map[string]string{v1beta1.AnnotationRestartedAt: asked}
			v := sees(server, append(objects, replaced)...)
			v.Now = c.now
			doomed, wait := immediateRestart(v)
			if got := podNames(doomed); !slices.Equal(got, c.want) || wait != c.wait {
				t.Errorf("deletes %v after %s, want %v after %s", got, wait, c.want, c.wait)
			}
		})
	}
}
