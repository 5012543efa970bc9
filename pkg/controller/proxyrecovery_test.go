// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/workload"
)

const proxyPodName = "web-5d8f9-x2x4z"

// crashed is the state of a runner that has ended, or waits to be started again.
func (o *operating) crashed(restarts int32, state corev1.ContainerState) {
	o.t.Helper()
	change(o.apiServer, proxyPodName, func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: workload.ProxyContainer, RestartCount: restarts, State: state}
	})
	change(o.apiServer, "web", func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.UnavailableReplicas = 0, 1 })
	o.rest()
}

func (o *operating) backend(ready int32) {
	o.t.Helper()
	change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Status.ReadyReplicas = ready })
	o.rest()
}

var (
	ended   = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	backOff = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
)

// A proxy that failed for want of a backend is Pending until it was started again, and does not wait out its back-off
// once the backend is back.
func TestProxyStartsAnewAfterAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		// before and after are the states of the runner before and after the backend is ready again.
		before, after         corev1.ContainerState
		restarts, restartsNow int32
		wantPhase             v1beta1.MCPServerPhase
		wantDeleted           []string
	}{
		"waiting":                            {backOff, backOff, 3, 3, v1beta1.PhasePending, []string{proxyPodName}},
		"just ended":                         {ended, ended, 1, 1, v1beta1.PhasePending, nil},
		"ended, and waiting since":           {ended, backOff, 1, 1, v1beta1.PhasePending, []string{proxyPodName}},
		"started again, and failing still":   {ended, backOff, 3, 4, v1beta1.PhaseFailed, nil},
		"failing only now":                   {corev1.ContainerState{}, backOff, 0, 0, v1beta1.PhaseFailed, nil},
		"failing in another way, to be kept": {ended, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerError"}}, 3, 3, v1beta1.PhasePending, nil},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.backend(0)
				o.crashed(c.restarts, c.before)
				o.backend(1)
				first := o.deleted()
				if _, there := get[*corev1.Pod](o.apiServer, proxyPodName); there {
					o.crashed(c.restartsNow, c.after)
				}
				if diff := cmp.Diff(c.wantDeleted, append(first, o.deleted()...), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("deleted pods (-want +got):\n%s", diff)
				}
				if got := o.server("web").Status; got.Phase != c.wantPhase {
					t.Errorf("it is %s (%s), want %s", got.Phase, got.Message, c.wantPhase)
				}
			})
		})
	}
}

// A pod that was not deleted is not given up: the deletion is repeated until it succeeds.
func TestProxyStartsAnewThoughItsDeletionWasRefused(t *testing.T) {
	for name, refusal := range map[string]error{
		"too many requests": apierrors.NewTooManyRequests("later", 0),
		"etcd":              apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
		"a broken network":  errors.New("connection reset by peer"),
		"a missing right":   apierrors.NewForbidden(corev1.Resource("pods"), proxyPodName, errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.backend(0)
				o.crashed(3, backOff)
				const refused = 3
				tries := 0
				o.before.set(func(w write) error {
					if w.verb != "delete" {
						return nil
					}
					if tries++; tries <= refused {
						return refusal
					}
					return nil
				})
				o.backend(1)
				<-time.After(time.Minute)
				o.rest()
				if _, there := get[*corev1.Pod](o.apiServer, proxyPodName); there || tries != refused+1 {
					t.Errorf("the pod is there: %t, after %d deletions, want it gone after %d", there, tries, refused+1)
				}
			})
		})
	}
}

// As long as the backend is not ready nothing is deleted, and the MCPServer says what it waits for.
func TestProxyWaitsWithItsBackend(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.backend(0)
		for restarts := range int32(4) {
			o.crashed(restarts, backOff)
		}
		if deleted := o.deleted(); len(deleted) > 0 {
			t.Errorf("deleted %q", deleted)
		}
		if got := o.server("web").Status; got.Phase != v1beta1.PhasePending || !strings.Contains(got.Message, "waiting for its backend") {
			t.Errorf("it is %s: %s", got.Phase, got.Message)
		}
	})
}

// A pod that fails while the backend is away is known until it has had a new start.
func TestRecoveryIsDecided(t *testing.T) {
	type failures = map[types.UID]failure
	for name, c := range map[string]struct {
		serves  bool
		before  failures
		state   corev1.ContainerState
		going   bool
		want    failures
		deleted bool
	}{
		"fails without a backend":          {before: nil, state: ended, want: failures{"pod": 3}},
		"others are known already":         {before: failures{"other": 1}, state: backOff, want: failures{"other": 1, "pod": 3}},
		"runs without a backend":           {want: failures{}},
		"the backend is back":              {serves: true, before: failures{"pod": 3}, state: backOff, want: failures{"pod": 3}, deleted: true},
		"it does not wait yet":             {serves: true, before: failures{"pod": 3}, state: ended, want: failures{"pod": 3}},
		"it was started again":             {serves: true, before: failures{"pod": 2}, state: backOff, want: failures{}},
		"it runs":                          {serves: true, before: failures{"pod": 3}, want: failures{}},
		"it is on its way out":             {serves: true, before: failures{"pod": 3}, state: backOff, going: true, want: failures{}},
		"it fails for a reason of its own": {serves: true, before: failures{"other": 3}, state: backOff, want: failures{}},
	} {
		t.Run(name, func(t *testing.T) {
			server, pod := newServer("web"), proxyPod("web", nil)
			pod.UID = "pod"
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: workload.ProxyContainer, RestartCount: 3, State: c.state}}
			if c.going {
				pod.DeletionTimestamp = &metav1.Time{Time: bubbleStart}
			}
			r := recoverProxies(sees(server, webProxy(server), pod, webBackend(server, func(set *appsv1.StatefulSet) {
				if !c.serves {
					set.Status.ReadyReplicas = 0
				}
			})), c.before)
			if diff := cmp.Diff(c.want, r.failed); diff != "" {
				t.Errorf("known (-want +got):\n%s", diff)
			}
			if deleted := len(r.doomed) == 1; deleted != c.deleted || r.recovering != (c.serves && len(c.want) > 0) {
				t.Errorf("%+v", r)
			}
		})
	}
}
