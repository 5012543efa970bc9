// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/printable"
	"github.com/freehold-dev/freehold/pkg/status"
)

// What users write stands in messages. It cannot steer the terminal of the one who reads them, or forge a line.
func TestMessagesArePrintable(t *testing.T) {
	const hostile = "it is \x1b]0;owned\x07\nReady True\u202e"
	const want = `it is \x1b]0;owned\a\nReady True\u202e`
	o := status.Observation{Server: server(), Invalid: []status.Finding{invalid(v1beta1.ConditionPodTemplateValid, hostile)}}
	got := status.Compute(o, time.Unix(0, 0))
	if condition := meta.FindStatusCondition(got.Conditions, v1beta1.ConditionPodTemplateValid); condition.Message != want {
		t.Errorf("the condition says %q, want %q", condition.Message, want)
	}
	if got.Message != printable.Text(got.Message) {
		t.Errorf("the message is %q", got.Message)
	}
	_, _, events := status.Notice(server(), o.Invalid[0], nil, time.Unix(0, 0))
	if len(events) != 1 || events[0].Note != want {
		t.Errorf("the events are %q, want %q", events, want)
	}
}
