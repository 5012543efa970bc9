// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestMigration goes from ToolHive's operator to Freehold as the pages say: at once, then with a word for an MCPServer, and
// then against an operator of ToolHive's that still writes.
func TestMigration(t *testing.T) {
	r := newReader(t)
	r.removeOperator(t)
	r.kubectl.Run(t, "create", "namespace", "toolhive-system")
	r.kubectl.Run(t, "create", "deployment", "toolhive-operator", "--image=ghcr.io/stacklok/toolhive/operator:v0.44.0", "-n", "toolhive-system")
	// A command waits for all that there are, and would wait for those of an earlier test, which are about to go.
	harness.Eventually(t, "no MCPServer is left", func(ctx context.Context) error {
		list, err := r.Env.Servers.ToolhiveV1beta1().MCPServers(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
	r.RestoreFixture(t, "edited", "first")
	// The page comes before its details.
	commands := Of(t)
	slices.SortStableFunc(commands, func(a, b Command) int { return cmp.Compare(len(a.File), len(b.File)) })
	for _, command := range commands {
		switch {
		case strings.Contains(command.Text, "kubectl wait"):
			// The pods of the operator are fake; a process stands in for them.
			operator := r.Operate(t)
			r.types(t, command)
			harness.Stop(t, operator)
			continue
		case strings.Contains(command.Text, v1beta1.AnnotationTakeover):
			r.RestoreFixture(t, "plain", web)
			r.Operate(t, "--takeover=manual")
			r.await(t, v1beta1.ConditionTakenOver, metav1.ConditionFalse)
			r.types(t, command)
			r.await(t, v1beta1.ConditionTakenOver, metav1.ConditionTrue)
			r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionTrue)
			continue
		case strings.Contains(command.Text, v1beta1.AnnotationTake):
			r.kubectl.Run(t, "label", "deployment/"+web, "--overwrite", "--field-manager="+managers.ToolHiveOperator, "toolhive=theirs")
			r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionFalse)
			r.types(t, command)
			r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionTrue)
			continue
		}
		if out := r.types(t, command); out == "" {
			t.Errorf("%v shows nothing", command)
		}
	}
	r.kubectl.Run(t, "delete", "namespace", "toolhive-system", "--wait=false")
}
