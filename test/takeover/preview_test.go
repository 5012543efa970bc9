// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/plugin/takeover"
	"github.com/freehold-dev/freehold/pkg/writers"
	"github.com/freehold-dev/freehold/test/harness"
)

// plugin runs kubectl freehold, which must end with the code, and returns what it prints.
func (w *world) plugin(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	e := cmd.OfProcess()
	e.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	where := []string{"--kubeconfig=" + w.Cluster.Kubeconfig(), "--namespace=" + w.Name, "--cache-dir=" + t.TempDir()}
	if got := cmd.Run(t.Context(), e, slices.Concat(args, where)); got != code {
		t.Fatalf("freehold %s ended with %d, want %d\n%s%s", strings.Join(args, " "), got, code, &out, &errOut)
	}
	return out.String()
}

// preview is what kubectl freehold says a takeover would do.
func (w *world) preview(t *testing.T) map[string]printers.ServerTakeover {
	t.Helper()
	text := w.plugin(t, cmd.ExitDone, "takeover", "--preview", "-o", "json",
		"--operator-arg=--openshift=false", "--operator-arg=--runner-image="+images.ProxyRunner)
	var answer printers.Takeovers
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	found := map[string]printers.ServerTakeover{}
	for _, server := range answer.Servers {
		found[server.Name] = server
	}
	return found
}

// revision is an annotation that the controller of Deployments counts rollouts in.
const revision = ".metadata.annotations.deployment.kubernetes.io/revision"

// configUIDs is an annotation whose value nobody knows before the ConfigMaps are made.
const configUIDs = ".spec.template.metadata.annotations." + v1beta1.AnnotationConfigUIDs

// checkPreview compares what was said with what has come about: each field of each object, and which pods have gone.
func (w *world) checkPreview(t *testing.T, m *member, said printers.ServerTakeover, before, after components, happened moved) {
	t.Helper()
	told := map[string]printers.ObjectTakeover{}
	for _, o := range said.Objects {
		told[o.Object] = o
	}
	for component, was := range before {
		if component == harness.ServerItself || harness.FormOf(component).Digest {
			continue // Configuration of another content is another object.
		}
		changes, err := takeover.Changes(writers.Schema(), was, after[component])
		if err != nil {
			t.Fatal(err)
		}
		var have []printers.FieldChange
		for _, c := range changes {
			if c.Path != revision && c.Path != configUIDs {
				have = append(have, c)
			}
		}
		form := harness.FormOf(component)
		name := strings.ToLower(form.Kind.Kind)
		if form.Kind.Group != "" {
			name += "." + form.Kind.Group
		}
		object, ok := told[name+"/"+form.Name(m.server.Name)]
		if !ok {
			t.Errorf("nothing was said of the %s", component)
		}
		if diff := cmp.Diff(asJSON(t, object.Changes), asJSON(t, have)); diff != "" {
			t.Errorf("the %s (-said +happened):\n%s", component, diff)
		}
	}
	for _, pods := range said.Pods {
		rolls := happened.proxyRolls
		if pods.Of == "backend" {
			rolls = happened.backendRolls
		}
		if pods.Replaced != (rolls == 1) || rolls > 1 {
			t.Errorf("the %s was rolled out %d times, and it was said: %+v", pods.Of, rolls, pods)
		}
	}
}

// asJSON is something as programs get it.
func asJSON(t *testing.T, what []printers.FieldChange) string {
	t.Helper()
	text, err := json.MarshalIndent(slices.Concat([]printers.FieldChange{}, what), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
