// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

const recordAnnotation = "example.com/replicas"

// recording is a target that records the number of replicas.
func recording(to *target) {
	to.Source = sourceAnnotation
	to.Recorded = apply.Recorded{Annotation: recordAnnotation, Path: fieldmanager.Path("spec", "replicas"), Value: func(of any) *int32 {
		switch of := of.(type) {
		case *deployment:
			return of.Spec.Replicas
		case *configuration:
			if of.Spec != nil {
				return of.Spec.Replicas
			}
		}
		return nil
	}}
}

// counted is a cache that keeps the number of replicas besides the state.
type counted struct{ *cached }

// counting is a cache that shows an object of which the writer of replicas has set the number to 1.
func counting(t *testing.T) counted {
	t.Helper()
	c := counted{&cached{store: created(t, replicas, recording, numbered(1))}}
	c.keep()
	c.settled(c.pass(numbered(1), nil), apply.ActionNone)
	return c
}

// keep makes the cache show the object as it is.
func (c counted) keep() {
	c.cached.keep()
	kept := &deployment{ObjectMeta: c.live().ObjectMeta}
	kept.Spec.Replicas = c.stored.Spec.Replicas
	c.state.Object = kept
}

// restart forgets all but what is stored.
func (c counted) restart() {
	c.cached.restart()
	c.keep()
}

func numbered(number int32) *configuration {
	return appsv1ac.Deployment("web", namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(number))
}

// scaleToNone leaves the number 0 without an owner, as a write through the subresource scale does.
func (c counted) scaleToNone() {
	c.t.Helper()
	const scaler = "scaler"
	c.update(scaler, func(d *deployment) { d.Spec.Replicas = new(int32(0)) })
	c.stored.ManagedFields = slices.DeleteFunc(c.stored.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == scaler })
	c.expectOwners(".spec.replicas")
	c.keep()
}

// unrecord removes annotations of the writer.
func (c counted) unrecord(annotations ...string) {
	c.update("them", func(d *deployment) {
		for _, annotation := range annotations {
			delete(d.Annotations, annotation)
		}
	})
	c.keep()
}

// standsDecided passes the intent twice: the number stays what it is, as a conflict with an unknown client, and nothing is sent.
func (c counted) standsDecided(why string) {
	c.t.Helper()
	c.requests = nil
	for range 2 {
		conflict := c.contestedBy(numbered(1), nil)
		if len(conflict.Fields) != 1 || len(conflict.Fields[0].Owners) != 1 || !conflict.Fields[0].Owners[0].IsUnknown() {
			c.t.Errorf("%s: the conflict is about %+v", why, conflict.Fields)
		}
	}
	c.expect(why)
	if *c.stored.Spec.Replicas != 0 {
		c.t.Errorf("%s: the number is %d", why, *c.stored.Spec.Replicas)
	}
}

// The record is on the object, where any client can remove it. The writer remembers what it wrote.
func TestANumberWithoutAnOwnerStaysAfterItsRecordIsRemoved(t *testing.T) {
	every := map[string][]string{
		"the record":                {recordAnnotation},
		"the record and the source": {recordAnnotation, sourceAnnotation},
	}
	for name, annotations := range every {
		t.Run(name+", before it is scaled", func(t *testing.T) {
			c := counting(t)
			c.unrecord(annotations...)
			c.scaleToNone()
			c.standsDecided("no record")
		})
		t.Run(name+", after that", func(t *testing.T) {
			c := counting(t)
			c.scaleToNone()
			c.standsDecided("scaled to none")
			c.unrecord(annotations...)
			c.standsDecided("no record")
		})
		t.Run(name+", after that and a restart", func(t *testing.T) {
			c := counting(t)
			c.scaleToNone()
			c.restart()
			c.standsDecided("another process")
			c.unrecord(annotations...)
			c.standsDecided("no record")
		})
	}
}

// A record that another client changes has an owner, and can be taken like any other field. The number stays until then.
func TestARecordThatAnotherClientChangesIsContested(t *testing.T) {
	for _, record := range []string{"", "0"} {
		t.Run(record, func(t *testing.T) {
			c := counting(t)
			c.update("them", func(d *deployment) { d.Annotations[recordAnnotation] = record })
			c.scaleToNone()
			conflict := c.contestedBy(numbered(1), nil)
			want := []apply.FieldConflict{{Path: ".metadata.annotations." + recordAnnotation, Owners: ownership.Owners(c.stored, ".metadata.annotations."+recordAnnotation)}}
			if diff := cmp.Diff(want, conflict.Fields); diff != "" || *c.stored.Spec.Replicas != 0 {
				t.Errorf("the number is %d, and the conflict (-want +got):\n%s", *c.stored.Spec.Replicas, diff)
			}
			c.settled(c.pass(numbered(1), takeAll), apply.ActionApplied)
			c.expectOwners(".spec.replicas", replicas.Name)
		})
	}
}

// A refusal in between does not end what the writer knows: it says nothing of who set the number.
func TestANumberWithoutAnOwnerStaysAfterARefusedWrite(t *testing.T) {
	for name, answer := range map[string]error{
		"outdated":  outdated(),
		"overload":  apierrors.NewTooManyRequests("later", 1),
		"forbidden": apierrors.NewForbidden(deployments, "web", errors.New("no rights")),
		"no answer": apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "patch", deployments, "web", "", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			c := counting(t)
			c.unrecord(recordAnnotation)
			c.refuse = func(string) error { return answer }
			if out := c.pass(numbered(1), nil); out.Err == nil {
				t.Fatalf("%s, want a refusal", out.Action)
			}
			c.refuse = nil
			c.scaleToNone()
			c.standsDecided("no record")
		})
	}
}

// What was written to another object, or of another number, says nothing about this one.
func TestANumberWithoutAnOwnerAndARecordIsWritten(t *testing.T) {
	for name, change := range map[string]func(c counted){
		"to another process": counted.restart,
		"to an object that was made again": func(c counted) {
			c.stored.UID = "33333333-3333-3333-3333-333333333333"
			c.keep()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := counting(t)
			c.unrecord(recordAnnotation)
			c.scaleToNone()
			change(c)
			c.settled(c.pass(numbered(1), nil), apply.ActionApplied)
			c.expectOwners(".spec.replicas", replicas.Name)
		})
	}
	t.Run("as another number", func(t *testing.T) {
		c := counting(t)
		c.unrecord(recordAnnotation)
		c.scaleToNone()
		c.standsDecided("no record")
		c.settled(c.pass(numbered(3), nil), apply.ActionApplied)
		if got := c.stored.Annotations[recordAnnotation]; got != strconv.Itoa(3) {
			t.Errorf("the record is %q", got)
		}
	})
	t.Run("as it is", func(t *testing.T) {
		c := counting(t)
		c.unrecord(recordAnnotation)
		c.scaleToNone()
		c.standsDecided("no record")
		c.settled(c.pass(numbered(1), takeAll), apply.ActionApplied)
		c.expectOwners(".spec.replicas", replicas.Name)
	})
}
