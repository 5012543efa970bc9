// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestAReplyIsWhatIsShownAfterTheEdit(t *testing.T) {
	r := newReplies()
	r.showServer("named", true) // before the edit: it is no answer to it
	r.send("named")
	r.send("undone")
	r.showDeployment("undone", false) // as it was before the edit
	r.showDeployment("undone", true)
	r.showServer("named", false)
	if r.answered() > 0 {
		t.Error("nothing is answered yet")
	}
	r.showServer("named", true)
	r.showServer("named", true)
	r.showDeployment("named", true)
	r.showDeployment("undone", false)
	r.showDeployment("undone", true)
	r.showDeployment("undone", false)
	if r.answered() != 2 || r.named != 1 || r.undone != 1 {
		t.Errorf("%d named, %d undone, times %v", r.named, r.undone, r.took)
	}
}

func TestWhetherADeploymentIsEdited(t *testing.T) {
	two := int32(2)
	d := &appsv1.Deployment{}
	if imageEdit("a").is(d) || scaleEdit(2).is(d) {
		t.Error("an empty Deployment is edited")
	}
	d.Spec.Replicas = &two
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "a"}}
	if !imageEdit("a").is(d) || imageEdit("b").is(d) {
		t.Error("the image is not what is looked at")
	}
	if !scaleEdit(2).is(d) || scaleEdit(1).is(d) {
		t.Error("the number of replicas is not what is looked at")
	}
}

func TestARolloutIsDoneWhenAllPodsAreNew(t *testing.T) {
	done := appsv1.Deployment{}
	done.Generation = 2
	done.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	if !isRolledOut(&done) {
		t.Error("it is not done")
	}
	for name, change := range map[string]func(s *appsv1.DeploymentStatus){
		"not observed":  func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 },
		"old pod":       func(s *appsv1.DeploymentStatus) { s.Replicas = 2 },
		"not updated":   func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 0 },
		"not available": func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 0 },
	} {
		d := done
		change(&d.Status)
		if isRolledOut(&d) {
			t.Errorf("%s: it is done", name)
		}
	}
}
