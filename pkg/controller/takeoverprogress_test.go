// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

const recordsProgress = "apply MCPServer/web freehold-takeover"

// forgery is what a client that may write the status alone writes there, and to the rest of the MCPServer in vain.
type forgery struct {
	manager, reason string
	value           metav1.ConditionStatus
	progress        v1beta1.TakeoverProgress
}

// forgeries are of a takeover that is under way, and of one that is done, by managers of several names.
func forgeries() (all []forgery) {
	for _, manager := range []string{"kubectl-edit", managers.Status, managers.Takeover, managers.ToolHiveOperator} {
		all = append(all,
			forgery{manager, v1beta1.ReasonTakingOver, metav1.ConditionFalse, v1beta1.TakeoverUnderWay},
			forgery{manager, v1beta1.ReasonTakenOver, metav1.ConditionTrue, v1beta1.TakeoverDone},
		)
	}
	return all
}

func (f forgery) String() string { return f.reason + " by " + f.manager }

func (f forgery) write(o *operating, name string) {
	o.t.Helper()
	changeAs(o.apiServer, "status", f.manager, name, func(server *v1beta1.MCPServer) {
		meta.SetStatusCondition(&server.Status.Conditions, metav1.Condition{
			Type: v1beta1.ConditionTakenOver, Status: f.value, Reason: f.reason, Message: "forged", ObservedGeneration: server.Generation,
		})
		progressed(server, f.progress)
		server.ManagedFields = append(server.ManagedFields, oursOf(managers.Finalizer))
	})
	o.rest()
}

func (o *operating) expectProgress(why string, want v1beta1.TakeoverProgress) {
	o.t.Helper()
	if got := takeover.Progress(o.server("web")); got != want {
		o.t.Errorf("%s: the takeover is %q, want %q", why, got, want)
	}
}

// restart lets another operator go on.
func (o *operating) restart(configure func(*Config)) {
	o.t.Helper()
	o.end()
	*o = *start(o.t, o.apiServer, configure)
	o.rest()
}

// One write before anything is taken, and one when all is.
func TestATakeoverIsRecorded(t *testing.T) {
	operate(t, byToolHive("web", "2"), nil, func(t *testing.T, o *operating) {
		writes := slices.DeleteFunc(o.took(), func(w string) bool { return strings.Contains(w, "/status") })
		if len(writes) == 0 || writes[0] != recordsProgress || slices.Contains(writes[1:], recordsProgress) {
			t.Errorf("the takeover begins with %v", writes)
		}
		o.expectProgress("it has begun", v1beta1.TakeoverUnderWay)
		o.replaceProxy("web")
		writes = o.took()
		if at := slices.Index(writes, recordsProgress); at < 0 || !slices.Equal(writes[at:], []string{recordsProgress, applyStatus}) {
			t.Errorf("the takeover ends with %v", writes)
		}
		o.expectProgress("it is over", v1beta1.TakeoverDone)
		<-time.After(time.Hour)
		o.expect(nil, "it is over")
	})
}

func TestFreeholdsOwnHaveNoRecordOfATakeover(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		writes := o.took()
		o.becomeReady("web")
		if o.expectProgress("nothing was taken", ""); slices.Contains(writes, recordsProgress) {
			t.Errorf("writes %v", writes)
		}
	})
}

// What waits for an approval is not taken over because its status says that this has begun, or is over.
func TestAStatusBeginsNoTakeover(t *testing.T) {
	for _, f := range forgeries() {
		t.Run(f.String(), func(t *testing.T) {
			manual := func(c *Config) { c.Takeover = TakeoverManual }
			operate(t, byToolHive("web", "2"), manual, func(t *testing.T, o *operating) {
				f.write(o, "web")
				o.restart(manual)
				for _, w := range o.took() {
					if w != applyStatus && w != editServer { // The claim to the condition ends.
						t.Errorf("nobody has approved %s", w)
					}
				}
				o.expectProgress("nobody has approved it", "")
				o.restart(nil)
				o.replaceProxy("web")
				if got := o.taken("web"); len(got) != 2 {
					t.Errorf("%v were taken, want both", got)
				}
				o.expectProgress("it may begin", v1beta1.TakeoverDone)
			})
		})
	}
}

// What was begun goes on to its end, whatever its status says, and whichever operator goes on.
func TestAStatusStopsNoTakeover(t *testing.T) {
	for _, f := range forgeries() {
		t.Run(f.String(), func(t *testing.T) {
			operate(t, byToolHive("web", "2"), nil, func(t *testing.T, o *operating) {
				f.write(o, "web")
				o.restart(func(c *Config) { c.Takeover = TakeoverOff })
				if got := o.taken("web"); !slices.Equal(got, []string{managers.Proxy}) {
					t.Errorf("%v were taken, want the proxy alone", got)
				}
				o.expectProgress("an old proxy lives", v1beta1.TakeoverUnderWay)
				o.replaceProxy("web")
				if got := o.taken("web"); len(got) != 2 {
					t.Errorf("%v were taken, want both", got)
				}
				o.expectProgress("all is taken", v1beta1.TakeoverDone)
			})
		})
	}
}

// toolHiveRecreates deletes a Deployment, and lets ToolHive's operator be the one to create it again.
func (o *operating) toolHiveRecreates(name string) {
	o.t.Helper()
	deployment := byToolHive(name, "2")[1].(*appsv1.Deployment)
	deployment.ManagedFields, deployment.UID = nil, ""
	deployment.OwnerReferences[0].UID = o.server(name).UID
	o.before.set(func(w write) error {
		if w.kind == managers.Deployment.Kind {
			return fmt.Errorf("later")
		}
		return nil
	})
	<-time.After(time.Minute) // It comes back later.
	remove[*appsv1.Deployment](o.apiServer, name)
	if err := o.api.Create(o.kindOf(deployment), deployment, managers.ToolHiveOperator); err != nil {
		o.t.Fatal(err)
	}
	o.before.set(nil)
	<-time.After(2 * maxBackoff)
	o.rest()
}

// expectIntruder expects that a Deployment is ToolHive's as it was, and that a condition says so.
func (o *operating) expectIntruder(name string) {
	o.t.Helper()
	if deployment, there := get[*appsv1.Deployment](o.apiServer, name); !there || managers.Owns(deployment, managers.Proxy, "") {
		o.t.Errorf("Freehold has taken what ToolHive has created: %t", there)
	}
	o.expectCondition("ToolHive has come back", v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, v1beta1.ReasonFieldManagerConflict)
}

// An MCPServer that was taken over is not taken over again because its status says that this is not done.
func TestAStatusRepeatsNoTakeover(t *testing.T) {
	for _, f := range forgeries() {
		t.Run(f.String(), func(t *testing.T) {
			operate(t, byToolHive("web", "2"), nil, func(_ *testing.T, o *operating) {
				o.replaceProxy("web")
				f.write(o, "web")
				o.toolHiveRecreates("web")
				o.expectIntruder("web")
				o.expectProgress("it is done", v1beta1.TakeoverDone)
			})
		})
	}
}

// The status of an MCPServer that Freehold has made cannot say that it was taken over: Freehold neither records nor reports that.
func TestAStatusMakesNoTakeoverOfFreeholdsOwn(t *testing.T) {
	for _, f := range forgeries() {
		t.Run(f.String(), func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.events.heard()
				f.write(o, "web")
				for _, w := range o.took() {
					if w != applyStatus && w != editServer {
						t.Errorf("it leads to %s", w)
					}
				}
				o.expectProgress("nothing was taken", "")
				if told := takenOver(o.server("web")); told != nil && told.Message != "forged" {
					t.Errorf("Freehold reports %v", told)
				}
				for _, event := range o.events.heard() {
					if strings.Contains(event, " "+v1beta1.ReasonTakenOver+" ") || strings.Contains(event, " "+v1beta1.ReasonTakingOver+" ") {
						t.Errorf("event %q", event)
					}
				}
			})
		})
	}
}

// A value that another client has set counts for nothing, and Freehold replaces it when it has something to record.
func TestRecordOfAnotherIsNotBelieved(t *testing.T) {
	for _, value := range []v1beta1.TakeoverProgress{v1beta1.TakeoverUnderWay, v1beta1.TakeoverDone, "?"} {
		t.Run(string(value), func(t *testing.T) {
			operate(t, byToolHive("web", "2"), func(c *Config) { c.Takeover = TakeoverManual }, func(t *testing.T, o *operating) {
				set := func() { o.annotate("web", v1beta1.AnnotationTakeoverProgress, string(value)); o.rest() }
				set()
				if begun := o.begun([]string{"web"}); len(begun) > 0 {
					t.Error("nobody has approved it")
				}
				o.restart(nil)
				o.expectProgress("it begins", v1beta1.TakeoverUnderWay)
				set()
				o.replaceProxy("web")
				o.expectProgress("it is over", v1beta1.TakeoverDone)
				if got := o.taken("web"); len(got) != 2 {
					t.Errorf("%v were taken, want both", got)
				}
				o.expectCondition("it is over", v1beta1.ConditionTakenOver, metav1.ConditionTrue, v1beta1.ReasonTakenOver)
			})
		})
	}
}

// restartAfterAnEarlier lets another operator go on after an earlier version, which recorded nothing.
func (o *operating) restartAfterAnEarlier(name string, configure func(*Config)) {
	o.t.Helper()
	o.end()
	changeAs(o.apiServer, "", managers.Takeover, name, func(server *v1beta1.MCPServer) { delete(server.Annotations, v1beta1.AnnotationTakeoverProgress) })
	if live := o.server(name); managers.Owns(live, managers.Takeover, "") {
		o.t.Fatalf("managedFields %v", live.ManagedFields)
	}
	o.took()
	*o = *start(o.t, o.apiServer, configure)
	o.rest()
}

// A takeover that an earlier version began goes on, although it may not begin any more.
func TestTakeoverOfAnEarlierVersionGoesOn(t *testing.T) {
	operate(t, byToolHive("web", "2"), nil, func(t *testing.T, o *operating) {
		o.restartAfterAnEarlier("web", func(c *Config) { c.Takeover = TakeoverOff })
		o.expectProgress("it goes on", v1beta1.TakeoverUnderWay)
		o.replaceProxy("web")
		if got := o.taken("web"); len(got) != 2 {
			t.Errorf("%v were taken, want both", got)
		}
		o.expectProgress("it is over", v1beta1.TakeoverDone)
		o.expectCondition("it is over", v1beta1.ConditionTakenOver, metav1.ConditionTrue, v1beta1.ReasonTakenOver)
	})
}

// What an earlier version took over is left as it is, its report included. When ToolHive comes back, nothing is taken from it.
func TestTakeoverOfAnEarlierVersionIsNotRepeated(t *testing.T) {
	operate(t, byToolHive("web", "2"), nil, func(_ *testing.T, o *operating) {
		o.replaceProxy("web")
		o.restartAfterAnEarlier("web", nil)
		o.expect(nil, "another version")
		o.expectCondition("another version", v1beta1.ConditionTakenOver, metav1.ConditionTrue, v1beta1.ReasonTakenOver)
		o.toolHiveRecreates("web")
		o.expectIntruder("web")
		o.expectProgress("nothing is taken", "")
	})
}

// A condition that says something else than that a takeover goes on, or is over, becomes no report of one.
func TestWaitingIsNoTakeover(t *testing.T) {
	for reason, stays := range map[string]bool{
		v1beta1.ReasonWaiting: false, v1beta1.ReasonNeedsApproval: false, v1beta1.ReasonCannotTakeOver: false, v1beta1.ReasonTakeoverOff: false,
		v1beta1.ReasonTakingOver: true, v1beta1.ReasonTakenOver: true,
	} {
		server := newServer("web")
		server.ManagedFields = []metav1.ManagedFieldsEntry{oursOf(managers.Finalizer)}
		server.ManagedFields[0].Time = new(metav1.NewTime(bubbleStart))
		told(server, metav1.ConditionFalse, reason)
		deployment := webProxy(server, func(d *appsv1.Deployment) {
			d.ManagedFields, d.CreationTimestamp = []metav1.ManagedFieldsEntry{oursOf(managers.Proxy)}, metav1.NewTime(bubbleStart.Add(-time.Hour))
		})
		if found := surveyed(sees(server, deployment)).progress(); len(found) > 0 != stays {
			t.Errorf("%s becomes %v", reason, found)
		}
		deployment.CreationTimestamp = metav1.NewTime(bubbleStart)
		if found := surveyed(sees(server, deployment)).progress(); len(found) > 0 {
			t.Errorf("nothing was taken, and %s becomes %v", reason, found)
		}
	}
}
