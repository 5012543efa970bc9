// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// verdict is what the conditions of an MCPServer say together. Of Ready, Reconciling and Stalled just one is True.
type verdict struct {
	// isTrue is the condition that is True.
	isTrue string
	// reason and mentions are those of the condition; no reason is any.
	reason   string
	mentions []string
}

// serves is that what the present generation asks for serves, and nothing else.
func serves() verdict { return verdict{isTrue: v1beta1.ConditionReady} }

// goesOn is that it comes about by itself.
func goesOn() verdict { return verdict{isTrue: v1beta1.ConditionReconciling, reason: "RollingOut"} }

// stuckAt is that it does not, because of a pod.
func stuckAt(pod, reason string, mentions ...string) verdict {
	return verdict{isTrue: v1beta1.ConditionStalled, reason: reason, mentions: append([]string{"pod " + pod}, mentions...)}
}

// stuck is that it does not, because of something else.
func stuck(reason string) verdict { return verdict{isTrue: v1beta1.ConditionStalled, reason: reason} }

// waitsFor is that somebody holds it up on purpose, and has to do something with a pod.
func waitsFor(pod, reason string) verdict {
	return verdict{isTrue: v1beta1.ConditionReconciling, reason: reason, mentions: []string{"pod " + pod}}
}

// waits is that somebody holds it up on purpose.
func waits(reason string) verdict {
	return verdict{isTrue: v1beta1.ConditionReconciling, reason: reason}
}

// of tells what is missing until an MCPServer is judged so, at a generation.
func (v verdict) of(server *v1beta1.MCPServer, generation int64) error {
	var missing []error
	if server.Status.ObservedGeneration != generation || server.Generation != generation {
		missing = append(missing, fmt.Errorf("generation %d, status of %d, want %d",
			server.Generation, server.Status.ObservedGeneration, generation))
	}
	for _, kind := range []string{v1beta1.ConditionReady, v1beta1.ConditionReconciling, v1beta1.ConditionStalled} {
		c := meta.FindStatusCondition(server.Status.Conditions, kind)
		if c == nil {
			missing = append(missing, errors.New("no condition "+kind))
			continue
		}
		want := metav1.ConditionFalse
		if kind == v.isTrue {
			want = metav1.ConditionTrue
		}
		if c.Status != want || c.ObservedGeneration != generation {
			missing = append(missing, fmt.Errorf("%s is %s of generation %d, %s: %q", kind, c.Status, c.ObservedGeneration, c.Reason, c.Message))
		}
		if kind != v.isTrue {
			continue
		}
		if v.reason != "" && c.Reason != v.reason {
			missing = append(missing, fmt.Errorf("%s because of %s, want %s: %q", kind, c.Reason, v.reason, c.Message))
		}
		for _, word := range v.mentions {
			if !strings.Contains(c.Message, word) {
				missing = append(missing, fmt.Errorf("%s does not mention %q: %q", kind, word, c.Message))
			}
		}
	}
	return errors.Join(append(missing, v.rolledOut(server, generation))...)
}

// rolledOut tells what is wrong with the condition that names the image which serves.
func (v verdict) rolledOut(server *v1beta1.MCPServer, generation int64) error {
	c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionRolledOut)
	want := metav1.ConditionFalse
	if v.isTrue == v1beta1.ConditionReady {
		want = metav1.ConditionTrue
	}
	switch {
	case c == nil:
		return errors.New("no condition " + v1beta1.ConditionRolledOut)
	case c.Status != want || c.ObservedGeneration != generation:
		return fmt.Errorf("%s is %s of generation %d: %q", c.Type, c.Status, c.ObservedGeneration, c.Message)
	case want == metav1.ConditionTrue && !strings.Contains(c.Message, server.Spec.Image):
		return fmt.Errorf("%s does not name the image %s: %q", c.Type, server.Spec.Image, c.Message)
	}
	return nil
}

// String is the verdict in a few words.
func (v verdict) String() string {
	return strings.TrimSpace(fmt.Sprintf("is judged %s %s %v", v.isTrue, v.reason, v.mentions))
}

// kubectlWaits tells whether kubectl wait --for=condition=Ready returns for the generation: kubectl looks at the status
// of the condition, and at the condition's generation if it has one.
func kubectlWaits(server *v1beta1.MCPServer) bool {
	c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= server.Generation
}
