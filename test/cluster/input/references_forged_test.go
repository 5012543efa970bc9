// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

const referencesPath = "/metadata/annotations/freehold.dev~1references"

// states are what a child can tell of the shared issuer that has never been.
func states(config *v1beta1.MCPOIDCConfig) map[string]string {
	name := "mcpoidcconfig/" + shared + "="
	return map[string]string{
		"newer":    fmt.Sprintf("%s%s/99@99999999", name, config.UID),
		"restored": name + "5f3759df-0000-4000-8000-000000000000/7@99999999", // From a cluster that has written more.
	}
}

// TestForgedReferences makes a proxy's Deployment tell of a state of the issuer that has never been, and lets it run another image. One
// read of the issuer for each state of the Deployment finds that out, one write replaces both, and one event says so.
func TestForgedReferences(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"newer", "restored"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			running := s.Operate(t, foreign)
			config := s.publish(t, issuer(address(1)))
			s.settled(t, harness.HTTPServer(web, authenticated))
			s.Expect(t, harness.Confirmations, s.Name)
			before, forged := s.MustObject(t, harness.Proxy, web), states(config)[how]
			if err := running.Pause(); err != nil {
				t.Fatal(err)
			}
			s.MustPatch(t, harness.Hand, harness.Proxy, web,
				harness.Replace(referencesPath, forged), harness.Replace(harness.FirstContainer+"/image", "example.com/other:1"))
			s.MustPatch(t, harness.Hand, harness.Proxy, web, harness.Replace("/metadata/managedFields", before.GetManagedFields()))
			mark := s.Mark(t)
			if err := running.Resume(); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, "the template is as it was", func(ctx context.Context) error {
				now, err := s.Object(ctx, harness.Proxy, web)
				if err != nil {
					return err
				}
				if diff := cmp.Diff(before.Object["spec"], now.Object["spec"]); diff != "" {
					return fmt.Errorf("(-before +now):\n%s", diff)
				}
				return nil
			})
			s.AwaitSettled(t, web)
			s.expectWritten(t, web, mark, harness.Once("proxy"))
			if got := s.deployment(t, web).Annotations[v1beta1.AnnotationReferences]; got != before.GetAnnotations()[v1beta1.AnnotationReferences] {
				t.Errorf("the references are %s", got)
			}
			// The hand makes two patches. What is there between them, if it is seen, is looked at as well, and so is the object again after a
			// write that has lost a race against the second.
			lost := harness.CountWrites(web, s.Writes(t, mark)).Lost()[harness.Proxy]
			s.expectConfirmations(t, mark, 2+lost)
			replaced := s.warnings(t, "SourceReplaced")
			if len(replaced) != 1 || replaced[0].Series != nil || !strings.Contains(replaced[0].Note, "freehold-proxy") {
				t.Errorf("the events are %+v", replaced)
			}
			s.AwaitNoConflict(t, web)
			s.Quiet(t, s.Mark(t), harness.Calm)
		})
	}
}

// TestContestedReferences leaves the forged annotation to the client that has made it. It is a contested field like any other: told
// with both sides, without requests while it stands, and over when it is taken.
func TestContestedReferences(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Operate(t, foreign)
	config := s.publish(t, issuer(address(1)))
	s.settled(t, harness.HTTPServer(web, authenticated))
	s.Expect(t, harness.Confirmations, s.Name)
	before, mark := s.deployment(t, web), s.Mark(t)
	s.MustPatch(t, harness.Hand, harness.Proxy, web, harness.Replace(referencesPath, states(config)["newer"]))
	s.AwaitConflict(t, web, harness.Hand, managers.Proxy, v1beta1.AnnotationReferences)
	s.WatchStanding(t, web, mark)
	count := harness.CountWrites(web, s.Writes(t, mark))
	if diff := cmp.Diff(harness.Once("event"), count.Without("status")); diff != "" {
		t.Errorf("it should cost one event (-want +got):\n%s", diff)
	}
	s.expectConfirmations(t, mark, 1)

	s.Annotate(t, web, v1beta1.AnnotationTake, "deployment.apps/"+web+":.metadata.annotations."+v1beta1.AnnotationReferences)
	s.AwaitNoConflict(t, web)
	harness.Eventually(t, "the references are as they were", func(context.Context) error {
		if got := s.deployment(t, web).Annotations[v1beta1.AnnotationReferences]; got != before.Annotations[v1beta1.AnnotationReferences] {
			return fmt.Errorf("they are %s", got)
		}
		return nil
	})
	if diff := cmp.Diff(before.Spec.Template, s.deployment(t, web).Spec.Template); diff != "" {
		t.Errorf("the template has changed (-before +now):\n%s", diff)
	}
	s.AwaitCalm(t, web)
	s.Quiet(t, s.Mark(t), harness.Calm)
}

// expectConfirmations fails the test unless operators have read what MCPServers refer to since the mark, the issuer, and at most so
// often. The Deployment is read where a conflict is explained.
func (s scene) expectConfirmations(t *testing.T, since audit.Mark, most int) {
	t.Helper()
	s.Mark(t)
	events, _, err := s.Audit.Since(since, s.ByOperator(), audit.Verb("get"), audit.Not(audit.Resource("apps", "deployments")))
	if err != nil {
		t.Fatal(err)
	}
	other := func(e *audit.Event) bool { return e.Group != toolhive.GroupName || e.Resource != "mcpoidcconfigs" }
	if len(events) == 0 || len(events) > most || slices.ContainsFunc(events, other) {
		t.Errorf("the reads are %v, want up to %d of the issuer", events, most)
	}
}

// warnings are the Warning events of a reason.
func (s scene) warnings(t *testing.T, reason string) (found []eventsv1.Event) {
	t.Helper()
	list, err := s.Core.EventsV1().Events(s.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Reason == reason && e.Type == "Warning" {
			found = append(found, e)
		}
	}
	return found
}
