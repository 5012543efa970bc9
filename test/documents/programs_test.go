// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/test/harness"
)

// TestPrograms runs the programs that use our clients as the page says, one after the other: the second does not need
// the MCPServer to be new.
func TestPrograms(t *testing.T) {
	for _, command := range Of(t) {
		t.Run(strings.Fields(command.Text)[2], func(t *testing.T) {
			r := newReader(t)
			r.Operate(t)
			p := start(t, r.filledIn(command), r.environment())
			p.Await(t, "ready at generation 2", patience)
			interrupt(t, p)
			if !strings.Contains(p.Said(), "released weather") {
				t.Error("it has not given back what it owned")
			}
		})
	}
}

// TestLibraryExample runs the controller that uses our packages as the page says.
func TestLibraryExample(t *testing.T) {
	harness.Long(t)
	r := newReader(t)
	for _, command := range Of(t) {
		if !strings.HasPrefix(command.Text, "go ") {
			r.types(t, command)
			continue
		}
		r.kubectl.Run(t, "wait", "--for=condition=Established", "crd/greetings.example.com")
		// It says nothing, so it cannot be told when go run is done with compiling.
		if _, err := r.attempt(t, "go -C examples/configmap-controller build -o "+t.TempDir()+" ."); err != nil {
			t.Fatal(err)
		}
		p := start(t, r.filledIn(command), r.environment())
		r.kubectl.Do(t, harness.Call{
			Args:  []string{"apply", "--server-side", "-f", "-"},
			Input: `{"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "hello"}, "spec": {"text": "Good day"}}`,
		})
		harness.Eventually(t, "the ConfigMap is there", func(ctx context.Context) error {
			got, err := r.kubectl.Try(ctx, harness.Call{Args: []string{"get", "configmap", "hello", "-o", "jsonpath={.data.greeting}"}})
			if err == nil && got != "Good day" {
				err = fmt.Errorf("it says %q", got)
			}
			return err
		})
		interrupt(t, p)
	}
}
