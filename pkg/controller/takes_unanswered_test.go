// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1ac "github.com/freehold-dev/freehold/generated/applyconfiguration/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// failServices has the API server answer every write of a Service with an error.
func (o *operating) failServices() {
	o.before.set(func(w write) error {
		if w.kind == managers.ServiceKind.Kind && w.verb == "apply" {
			return apierrors.NewInternalError(errors.New("failed calling webhook"))
		}
		return nil
	})
}

func TestAnotherWriteThatFailsHoldsUpNoTake(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		seize(t, o, "evil")
		o.rest()
		o.failServices()
		remove[*corev1.Service](o.apiServer, "mcp-web-proxy")
		<-time.After(30 * time.Minute)
		o.annotate("web", v1beta1.AnnotationTake, takeImage)
		<-time.After(30 * time.Minute)
		o.rest()
		o.imageTaken()
	})
}

// As long as an object cannot be written, a request that matches no known conflict is neither refused nor forgotten.
func TestATakeOfNothingKnownStaysOpenWhileAnotherWriteFails(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.failServices()
		remove[*corev1.Service](o.apiServer, "mcp-web-proxy")
		<-time.After(30 * time.Minute)
		o.annotate("web", v1beta1.AnnotationTake, "helm")
		<-time.After(30 * time.Minute)
		o.rest()
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken)
		if status != metav1.ConditionUnknown || reason != v1beta1.ReasonTaking || !strings.Contains(message, "not written yet") {
			t.Errorf("during the outage FieldsTaken is %s because of %s: %s", status, reason, message)
		}
		o.took()
		<-time.After(time.Hour)
		if writes := o.took(); slices.Contains(writes, applyStatus) {
			t.Errorf("the status is written again: %q", writes)
		}
		o.before.set(nil)
		<-time.After(30 * time.Minute)
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken); status != metav1.ConditionFalse || reason != v1beta1.ReasonNothingToTake {
			t.Errorf("afterwards FieldsTaken is %s because of %s: %s", status, reason, message)
		}
	})
}

// unmade are answers to an edit of managedFields that leave the fields to who owns them.
func unmade() map[string]error {
	return map[string]error{
		"a webhook fails":           apierrors.NewInternalError(errors.New("failed calling webhook")),
		"a policy forbids it":       apierrors.NewForbidden(schema.GroupResource{Resource: "statefulsets"}, "web", errors.New("no such image")),
		"a webhook answers invalid": apierrors.NewInvalid(managers.StatefulSet, "web", nil),
	}
}

// refuseOnly has the API server answer one kind of write with an error.
func (o *operating) refuseOnly(short string, answer error) {
	o.before.set(func(w write) error {
		if w.String() == short {
			return answer
		}
		return nil
	})
}

// expectCondition checks a condition of the MCPServer web.
func (o *operating) expectCondition(when, conditionType string, want metav1.ConditionStatus, wantReason string) {
	o.t.Helper()
	if status, reason, message := o.condition("web", conditionType); status != want || reason != wantReason {
		o.t.Errorf("%s %s is %s because of %s: %s", when, conditionType, status, reason, message)
	}
}

// A withdrawal ends the record although another manager owns it as well, as after a restore from a backup.
func TestAWithdrawalEndsASharedRecord(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.annotate("web", v1beta1.AnnotationTake, "helm")
		record := o.server("web").Annotations[v1beta1.AnnotationTakeRecord]
		shared := toolhivev1beta1ac.MCPServer("web", "shop").WithAnnotations(map[string]string{v1beta1.AnnotationTakeRecord: record})
		if _, err := o.servers.ToolhiveV1beta1().MCPServers("shop").Apply(t.Context(), shared, metav1.ApplyOptions{FieldManager: "backup"}); err != nil {
			t.Fatal(err)
		}
		o.rest()
		o.annotate("web", v1beta1.AnnotationTake, "")
		o.rest()
		if record, found := o.server("web").Annotations[v1beta1.AnnotationTakeRecord]; found {
			t.Errorf("the record is still there: %s", record)
		}
		o.expectCondition("after the withdrawal", v1beta1.ConditionFieldsTaken, "", "")
		o.took()
		<-time.After(time.Hour)
		o.expect(nil, "it is withdrawn")
		seize(t, o, "evil")
		o.rest()
		o.annotate("web", v1beta1.AnnotationTake, "helm")
		if image := o.backendImage(); image != "example.com/web" {
			t.Errorf("image %s when it was asked for again", image)
		}
	})
}

// takeAfterOutage asks to take something while the edit that takes it is refused, and lets the outage end after half an hour.
func (o *operating) takeAfterOutage(edit string, answer error, take string) {
	o.t.Helper()
	o.refuseOnly(edit, answer)
	o.annotate("web", v1beta1.AnnotationTake, take)
	<-time.After(30 * time.Minute)
	o.rest()
	o.expectCondition("during the outage", v1beta1.ConditionFieldsTaken, metav1.ConditionUnknown, v1beta1.ReasonTaking)
	o.before.set(nil)
	<-time.After(30 * time.Minute)
	o.rest()
}

// As long as the transfer itself is refused, the request is reported as not carried out.
func TestATakeThatFailsForLongIsReported(t *testing.T) {
	for name, answer := range unmade() {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				seize(t, o, "evil")
				o.rest()
				o.takeAfterOutage(editBackend, answer, takeImage)
				o.imageTaken()
			})
		})
	}
}

const takePhase = "mcpserver.toolhive.stacklok.dev/web:.status.phase"

// The same of a field of the status, whose other fields are written meanwhile.
func TestATakeOfTheStatusThatFailsForLongIsReported(t *testing.T) {
	for name, answer := range unmade() {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.seizeStatus(toolhivev1beta1ac.MCPServerStatus().WithPhase(v1beta1.PhaseFailed))
				o.rest()
				o.takeAfterOutage(editServer, answer, takePhase)
				o.expectCondition("afterwards", v1beta1.ConditionFieldsTaken, metav1.ConditionTrue, v1beta1.ReasonTaken)
				if phase := o.server("web").Status.Phase; phase != v1beta1.PhaseReady {
					t.Errorf("the phase is %s", phase)
				}
			})
		})
	}
}

// A manager that writes again before its fields could be taken has made another claim, which the request is not about. That is
// reported, also by the next operator, until the author asks again.
func TestATakeIsNotAboutWhatIsClaimedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		edit, take string
		claim      func(t *testing.T, o *operating, again bool)
		ours       func(o *operating) bool
	}{
		"a child": {
			editBackend, takeImage,
			func(t *testing.T, o *operating, again bool) {
				seize(t, o, map[bool]string{false: "evil", true: "worse"}[again])
			},
			func(o *operating) bool { return o.backendImage() == "example.com/web" },
		},
		"the status": {
			editServer, takePhase,
			func(_ *testing.T, o *operating, again bool) {
				phase := map[bool]v1beta1.MCPServerPhase{false: v1beta1.PhaseTerminating, true: v1beta1.PhasePending}[again]
				o.seizeStatus(toolhivev1beta1ac.MCPServerStatus().WithPhase(phase))
			},
			func(o *operating) bool { return o.server("web").Status.Phase == v1beta1.PhaseReady },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, newServer("web"))
				o := start(t, s, nil)
				o.rest()
				o.becomeReady("web")
				test.claim(t, o, false)
				o.rest()
				o.refuseOnly(test.edit, unmade()["a webhook fails"])
				o.annotate("web", v1beta1.AnnotationTake, test.take)
				<-time.After(30 * time.Minute)
				test.claim(t, o, true)
				<-time.After(30 * time.Minute)
				o.before.set(nil)
				<-time.After(30 * time.Minute)
				expect := func(when string) {
					t.Helper()
					o.rest()
					o.expectCondition(when, v1beta1.ConditionFieldsTaken, metav1.ConditionFalse, v1beta1.ReasonClaimedAgain)
					o.expectCondition(when, v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, v1beta1.ReasonFieldManagerConflict)
					if test.ours(o) {
						t.Errorf("%s what was claimed later is taken", when)
					}
				}
				expect("after the outage")
				o.end()
				o = start(t, s, nil)
				defer func() { o.end() }()
				expect("after a restart")
				o.annotate("web", v1beta1.AnnotationTake, "")
				o.annotate("web", v1beta1.AnnotationTake, test.take)
				o.rest()
				o.expectCondition("when asked again", v1beta1.ConditionFieldsTaken, metav1.ConditionTrue, v1beta1.ReasonTaken)
				if !test.ours(o) {
					t.Error("it is not taken when it is asked for again")
				}
			})
		})
	}
}

func TestAYieldThatFailsForLongIsNotReportedAsDone(t *testing.T) {
	for name, answer := range unmade() {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
				o.becomeReady("web")
				o.refuseOnly(editBackend, answer)
				o.annotate("web", v1beta1.AnnotationYield, mcpImage)
				<-time.After(30 * time.Minute)
				o.rest()
				o.expectCondition("during the outage", v1beta1.ConditionFieldsYielded, "", "")
				o.before.set(nil)
				<-time.After(30 * time.Minute)
				o.rest()
				o.expectCondition("afterwards", v1beta1.ConditionFieldsYielded, metav1.ConditionTrue, v1beta1.ReasonYielded)
			})
		})
	}
}

func TestAYieldIsReportedWhileAnotherWriteFails(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.failServices()
		remove[*corev1.Service](o.apiServer, "mcp-web-proxy")
		<-time.After(30 * time.Minute)
		o.annotate("web", v1beta1.AnnotationYield, takeImage)
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsYielded); status != metav1.ConditionTrue || reason != v1beta1.ReasonYielded {
			t.Errorf("FieldsYielded is %s because of %s: %s", status, reason, message)
		}
	})
}

// A request to take, or to leave to others, what the proxy's writer has set stands while the proxy waits for a usable reference. It is
// carried out afterwards, whether the process has known of the conflict or has been started meanwhile.
func TestATakeStandsWhileAReferenceIsBroken(t *testing.T) {
	for name, restarts := range map[string]bool{"a known conflict": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, authenticated("web"), issuer("https://idp.example.com"))
				o := start(t, s, nil)
				defer func() { o.end() }()
				o.rest()
				o.becomeReady("web")
				o.seizeLabel("web")
				remove[*v1beta1.MCPOIDCConfig](s, "corp")
				o.rest()
				if restarts {
					o.end()
					o = start(t, s, nil)
					o.rest()
				}
				o.annotate("web", v1beta1.AnnotationTake, "deployment.apps/web:.metadata.labels")
				for range 2 {
					o.expectCondition("while the issuer is gone", v1beta1.ConditionFieldsTaken, metav1.ConditionUnknown, v1beta1.ReasonTaking)
					<-time.After(time.Hour)
				}
				o.add(issuer("https://idp.example.com"))
				o.rest()
				o.expectCondition("afterwards", v1beta1.ConditionFieldsTaken, metav1.ConditionTrue, v1beta1.ReasonTaken)
				if d, _ := get[*appsv1.Deployment](s, "web"); d.Labels["app"] == "theirs" {
					t.Error("the label was not taken")
				}
				o.expectContested("web", false, "the label was taken")
			})
		})
	}
}

func TestAYieldStandsWhileAReferenceIsBroken(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.seizeLabel("web")
		o.annotate("web", v1beta1.AnnotationYield, "deployment.apps/web:.metadata.labels.app")
		yielded := func(when string) {
			t.Helper()
			if status, reason, message := o.condition("web", v1beta1.ConditionFieldsYielded); status != metav1.ConditionTrue {
				t.Errorf("%s: FieldsYielded is %s because of %s: %s", when, status, reason, message)
			}
		}
		yielded("the label is theirs")
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		yielded("the issuer is gone")
		o.add(issuer("https://idp.example.com"))
		o.rest()
		yielded("the issuer is back")
	})
}
