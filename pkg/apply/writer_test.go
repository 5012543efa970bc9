// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

// Who is not registered has no claim and gets no writer.
func TestOnlyRegisteredManagersWrite(t *testing.T) {
	for name, manager := range map[string]fieldmanager.Writer{
		"another name":        {Name: "other", Kind: deploymentKind},
		"another kind":        {Name: content.Name},
		"another subresource": {Name: content.Name, Kind: deploymentKind, Subresource: "status"},
	} {
		if w, err := apply.NewWriter(registry(), manager, newServer(t).target()); err == nil {
			t.Errorf("%s: got a writer named %s", name, w.Name())
		}
	}
	if name := newWriter(t, content, newServer(t).target()).Name(); name != content.Name {
		t.Errorf("the writer's name is %q", name)
	}
}

// What a programmer mixed up is refused before it is sent, and does not panic.
func TestMixedUpRequestsAreTerminal(t *testing.T) {
	b := newBench(t, content, (*server).target)
	for name, test := range map[string]struct {
		writer  apply.Writer
		request apply.Request
		want    string
	}{
		"another kind of intent": {b.writer, apply.Request{Config: corev1ac.ConfigMap("web", namespace)}, "ConfigMapApplyConfiguration"},
		"no intent":              {b.writer, apply.Request{}, "<nil>"},
		"another kind of object": {b.writer, apply.Request{Config: web("a:1"), Observed: apply.Observed{Live: &corev1.ConfigMap{}}}, "*v1.ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			test.request.Object = webRef
			out := do(t.Context(), b.applier, test.writer, test.request)
			if apply.ClassOf(out.Err) != apply.ClassTerminal || out.Action == apply.ActionApplied {
				t.Fatalf("%s with error %v, want class Terminal", out.Action, out.Err)
			}
			if !strings.Contains(out.Err.Error(), test.want) {
				t.Errorf("%v does not tell of %s", out.Err, test.want)
			}
			b.expect(0, name)
		})
	}
}

func terminating(live *deployment) *deployment {
	live.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return live
}

func TestTerminatingObjectsAreLeftAlone(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := terminating(after(t, content.Name, web("a:1")))
	for _, image := range []string{"a:1", "a:2"} {
		out := b.sync(live, web(image), 1)
		if apply.ClassOf(out.Err) != apply.ClassGone || out.Action != apply.ActionRefused || out.Live != metav1.Object(live) {
			t.Errorf("image %s: %s with error %v, want Refused with class Gone", image, out.Action, out.Err)
		}
	}
	b.expect(0, "an object that is going")
}

func TestTerminatingObjectsAreLetGo(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := terminating(after(t, content.Name, web("a:1")))
	let := func() apply.Outcome {
		nothing := web("a:1")
		nothing.Labels, nothing.Spec = nil, nil
		return do(t.Context(), b.applier, b.writer, apply.Request{Object: webRef, Config: nothing, Observed: apply.Observed{Live: live}, Preconditions: apply.Preconditions{LetGo: true}})
	}
	b.settled(let(), apply.ActionApplied)
	sent := b.expect(1, "letting go")[0]
	if got := sent.metadata(t); got.UID != string(liveUID) || got.ResourceVersion != "7" {
		t.Errorf("let go under uid %q and version %q", got.UID, got.ResourceVersion)
	}
	// The cache may show the claim for a while yet.
	b.settled(let(), apply.ActionNone)
	b.expect(0, "letting go of what was let go of")
	live = live.DeepCopy()
	live.ManagedFields = nil
	b.applier.Forget(webRef)
	b.settled(let(), apply.ActionNone)
	b.expect(0, "who owns nothing has nothing to let go of")
}

// keeping keeps the image that is owned.
func keeping(s *server) target {
	to := s.target()
	to.Keep = func(owned *configuration) any {
		if owned.Spec == nil || owned.Spec.Template == nil {
			return nil
		}
		return *owned.Spec.Template.Spec.Containers[0].Image
	}
	return to
}

// preserving syncs an intent that takes over the image that is owned, as a writer does with values that are not worth a
// write.
func (b *bench) preserving(live *deployment, want *configuration, count *int) apply.Outcome {
	b.t.Helper()
	req := apply.Request{Object: webRef, Config: want, Source: apply.Source{UID: sourceUID, Generation: 1}}
	if live != nil {
		req.Live = live
	}
	req.Preserve = func(want runtime.ApplyConfiguration, kept any) {
		*count++
		want.(*configuration).Spec.Template.Spec.Containers[0].Image = new(kept.(string))
	}
	return do(b.t.Context(), b.applier, b.writer, req)
}

func TestPreserveTakesOverWhatIsNotWorthAWrite(t *testing.T) {
	var settled int
	b := newBench(t, content, keeping)
	live := after(t, content.Name, web("a:1"))
	b.settled(b.preserving(live, web("a:2"), &settled), apply.ActionNone)
	b.expect(0, "nothing else differs")
	if settled != 1 {
		t.Fatalf("Preserve was asked %d times, want 1", settled)
	}
	b.settled(b.preserving(live, web("a:2"), &settled), apply.ActionNone)
	if settled != 1 {
		t.Error("Preserve was asked again for what is remembered")
	}

	more := web("a:3").WithAnnotations(map[string]string{"note": "x"})
	now := b.settled(b.preserving(live, more, &settled), apply.ActionApplied)
	if image := now.Spec.Template.Spec.Containers[0].Image; image != "a:1" {
		t.Errorf("image %s was written along with another change, want the one that Preserve kept", image)
	}
}

func TestPreserveIsNotAskedWithoutAClaim(t *testing.T) {
	var settled int
	b := newBench(t, content, keeping)
	b.settled(b.preserving(nil, web("a:1"), &settled), apply.ActionCreated)
	b.settled(b.preserving(after(t, "someone", web("a:2")), web("a:2"), &settled), apply.ActionApplied)
	if settled != 0 {
		t.Errorf("Preserve was asked %d times about nothing that we own", settled)
	}
}
