// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

var update = flag.Bool("update", false, "write the bodies of requests in testdata anew")

func TestBodiesAreSentAsTheyAreCheckedIn(t *testing.T) {
	older := func(t *testing.T) *deployment {
		t.Helper()
		return after(t, content.Name, web("a:1").WithAnnotations(map[string]string{
			sourceAnnotation: apply.Source{UID: sourceUID, Generation: 3}.String(),
		}))
	}
	stamping := (*server).stamping
	plain := (*server).target
	for name, test := range map[string]struct {
		manager fieldmanager.Writer
		target  func(*server) target
		live    func(t *testing.T) *deployment
		want    *configuration
		action  apply.Action
	}{
		"create":             {content, stamping, nil, web("a:1"), apply.ActionCreated},
		"create-unstamped":   {replicas, plain, nil, appsv1ac.Deployment("web", namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2)), apply.ActionCreated},
		"change":             {content, stamping, older, web("a:2"), apply.ActionApplied},
		"change-unstamped":   {replicas, plain, older, appsv1ac.Deployment("web", namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2)), apply.ActionApplied},
		"scale-to-zero":      {replicas, plain, older, appsv1ac.Deployment("web", namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(0)), apply.ActionApplied},
		"give-everything-up": {content, plain, older, appsv1ac.Deployment("web", namespace), apply.ActionApplied},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.manager, test.target)
			var live *deployment
			if test.live != nil {
				live = test.live(t)
			}
			b.settled(b.sync(live, test.want, 4), test.action)
			sent := b.expect(1, name)[0]
			if sent.namespace != namespace || sent.manager != test.manager.Name {
				t.Errorf("sent to namespace %q as %q, want %q as %q", sent.namespace, sent.manager, namespace, test.manager.Name)
			}
			golden(t, filepath.Join("testdata", "bodies", name+".json"), sent.body)
		})
	}
}

func golden(t *testing.T, file string, body []byte) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, indented.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./pkg/apply -update writes it", err)
	}
	if diff := cmp.Diff(string(want), indented.String()); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// metadata is what of a body makes it a compare-and-swap.
type metadata struct {
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Annotations     map[string]string `json:"annotations"`
}

func (c call) metadata(t *testing.T) metadata {
	t.Helper()
	var body struct {
		Metadata metadata `json:"metadata"`
	}
	if err := json.Unmarshal(c.body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Metadata
}

// An object that is not known may only be created: version 1 is older than any, so an apply that meets an object
// is refused. And there is no UID, which would forbid the creation.
func TestUnknownObjectsAreOnlyCreated(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := b.settled(b.sync(nil, web("a:1"), 1), apply.ActionCreated)
	got := b.expect(1, "a missing object")[0].metadata(t)
	if diff := cmp.Diff(metadata{ResourceVersion: "1"}, got); diff != "" {
		t.Errorf("precondition (-want +got):\n%s", diff)
	}
	if live.UID != liveUID || live.ResourceVersion != "101" {
		t.Errorf("the outcome is not the server's answer, but %s at %s", live.UID, live.ResourceVersion)
	}
}

// An apply to a known object names the UID and the resourceVersion that were seen.
func TestKnownObjectsAreComparedAndSwapped(t *testing.T) {
	b := newBench(t, content, (*server).target)
	live := after(t, content.Name, web("a:1"))
	live.UID, live.ResourceVersion = "another", "4711"
	b.settled(b.sync(live, web("a:2"), 1), apply.ActionApplied)
	got := b.expect(1, "a change")[0].metadata(t)
	if diff := cmp.Diff(metadata{UID: "another", ResourceVersion: "4711"}, got); diff != "" {
		t.Errorf("precondition (-want +got):\n%s", diff)
	}
}
