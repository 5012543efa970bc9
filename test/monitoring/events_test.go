// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// resyncs is how many looks without a cause a conflict has to stand without any news.
const resyncs = 4

// conflictEvents are those about a conflict.
func conflictEvents(ctx context.Context, ns *harness.Namespace) ([]eventsv1.Event, error) {
	list, err := env.Core.EventsV1().Events(ns.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason != "FieldManagerConflict" }), nil
}

// eventWrites are the requests about events of the MCPServer's, as verb and API.
func eventWrites(t *testing.T, ns *harness.Namespace, since audit.Mark) []string {
	t.Helper()
	var requests []string
	for _, e := range ns.Writes(t, since) {
		if e.Resource == "events" {
			requests = append(requests, fmt.Sprintf("%s %s/%s %d", e.Verb, e.Group, e.Version, e.Code))
		}
	}
	return requests
}

// dispute makes somebody set the image of the proxy, until the MCPServer tells of it.
func dispute(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	ns.MustPatch(t, harness.Hand, harness.Proxy, "web", harness.Replace(proxyImage, otherImage))
	ns.AwaitServer(t, "web", "tells of the conflict", owned(metav1.ConditionFalse))
}

// owned wants the condition FieldsOwned to have a status.
func owned(status metav1.ConditionStatus) func(*v1beta1.MCPServer) error {
	return func(server *v1beta1.MCPServer) error {
		for _, c := range server.Status.Conditions {
			if c.Type == v1beta1.ConditionFieldsOwned && c.Status == status {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", server.Status.Conditions)
	}
}

// A conflict is one event of events.k8s.io/v1, however often it is looked at while it stands. When it is over and comes
// again the same event becomes a series, and the third time costs no request at once.
func TestEvents(t *testing.T) {
	ns := env.Namespace(t)
	_, log := ns.OperateLogged(t, "--resync-period=1s")
	ns.Create(t, harness.Server("web", v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, "web")
	settled := ns.Mark(t)
	ours := image(t, ns)

	dispute(t, ns)
	var first eventsv1.Event
	harness.Eventually(t, "there is an event", func(ctx context.Context) error {
		found, err := conflictEvents(ctx, ns)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("there are %d", len(found))
		}
		if err == nil {
			first = found[0]
		}
		return err
	})
	if first.Type != corev1.EventTypeWarning || first.Action != "Apply" || first.Series != nil || first.ReportingController != "freehold" ||
		first.EventTime.IsZero() || first.Regarding.Kind != "MCPServer" || first.Regarding.Name != "web" || first.Regarding.UID == "" ||
		!strings.Contains(first.Note, harness.Hand) || first.DeprecatedCount != 0 {
		t.Errorf("the event is %+v", first)
	}

	looked := ns.Mark(t)
	const look = `"Looked at rollouts"`
	before := strings.Count(log(), look)
	harness.Eventually(t, "looks at the conflict that stands", func(context.Context) error {
		if looks := strings.Count(log(), look) - before; looks < resyncs {
			return fmt.Errorf("there were %d", looks)
		}
		return nil
	})
	ns.Quiet(t, looked, time.Second)

	for range 2 {
		ns.MustPatch(t, harness.Hand, harness.Proxy, "web", harness.Replace(proxyImage, ours))
		ns.AwaitServer(t, "web", "tells of no conflict", owned(metav1.ConditionTrue))
		dispute(t, ns)
	}
	harness.Eventually(t, "the event has become a series", func(ctx context.Context) error {
		found, err := conflictEvents(ctx, ns)
		if err == nil && (len(found) != 1 || found[0].UID != first.UID || found[0].Series == nil || found[0].Series.Count != 2) {
			err = fmt.Errorf("events %+v", found)
		}
		return err
	})
	ns.Quiet(t, ns.Mark(t), harness.Calm)
	want := []string{"create events.k8s.io/v1 201", "patch events.k8s.io/v1 200"}
	if got := eventWrites(t, ns, settled); !slices.Equal(got, want) {
		t.Errorf("three times the same news cost %v, want %v", got, want)
	}
}

// A conflict about so many fields that an event has no room for them all is told nevertheless, with whole commands: they name
// what is above the fields.
func TestALongConflictIsToldInAnEvent(t *testing.T) {
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.Server("web", v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, "web")
	operations := []harness.Operation{harness.Replace(proxyImage, otherImage)}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		for _, field := range []string{"periodSeconds", "timeoutSeconds", "failureThreshold", "initialDelaySeconds"} {
			operations = append(operations, harness.Replace("/spec/template/spec/containers/0/"+probe+"/"+field, 77))
		}
	}
	ns.MustPatch(t, harness.Hand, harness.Proxy, "web", operations...)
	message := ""
	ns.AwaitServer(t, "web", "tells of a long conflict", func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "(+8 more fields)") {
			return fmt.Errorf("condition %+v", c)
		}
		message = c.Message
		return nil
	})
	harness.Eventually(t, "there is an event", func(ctx context.Context) error {
		found, err := conflictEvents(ctx, ns)
		if err == nil && (len(found) != 1 || found[0].Note != message) {
			err = fmt.Errorf("events %+v", found)
		}
		return err
	})
}

// image is that of the proxy.
func image(t *testing.T, ns *harness.Namespace) string {
	t.Helper()
	deployment, err := env.Core.AppsV1().Deployments(ns.Name).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return deployment.Spec.Template.Spec.Containers[0].Image
}
