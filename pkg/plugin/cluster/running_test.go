// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/shell/shelltest"
)

// The command that stops an operator calls kubectl and nothing else, whatever its Deployment is called.
func TestPrintedStopTakesNothingForAProgram(t *testing.T) {
	for _, text := range shelltest.Hostile() {
		s := &search{Product: ToolHive, client: &Client{}}
		s.deployment(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "-n" + text, Name: text, Labels: map[string]string{v1beta1.LabelAppName: ToolHive.label},
		}})
		want := [][]string{{"scale", "-n", "-n" + text, "deployment/" + text, "--replicas=0"}}
		if diff := cmp.Diff(want, shelltest.Calls(t, s.found[0].Stop)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.found[0].Stop, diff)
		}
	}
}
