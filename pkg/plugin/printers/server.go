// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/pkg/plugin/health"
)

// Server shows the answer of status for one MCPServer.
type Server struct{ *health.Server }

// lastEvents is how many events are shown.
const lastEvents = 10

// Print shows it for humans: its children as a tree, its conditions and the last events; wide shows all that the API server still has.
func (s Server) Print(to io.Writer, palette Palette, now time.Time, wide bool) error {
	age := func(at *time.Time) string {
		if at == nil {
			return ""
		}
		return Age(*at, now)
	}
	rows := [][]string{{s.Object + " (namespace " + s.Namespace + ")", "", ""}}
	if s.ObservedGeneration != s.Generation {
		rows[0][1] = fmt.Sprintf("at generation %d, and its status tells of %d", s.Generation, s.ObservedGeneration)
	}
	for i, child := range s.Children {
		branch, indent := branchOf(i == len(s.Children)-1)
		rows = append(rows, []string{branch + child.Object, child.State, age(child.Created)})
		for j, pod := range child.Pods {
			branch, _ := branchOf(j == len(child.Pods)-1)
			rows = append(rows, []string{indent + branch + pod.Object, pod.State, age(pod.Created)})
		}
	}
	if err := Table(to, palette, rows[0], rows[1:], true); err != nil {
		return err
	}
	rows = nil
	for _, c := range s.Conditions {
		rows = append(rows, []string{c.Type, string(c.Status), c.Reason, Age(c.LastTransitionTime.Time, now), c.Message})
	}
	fmt.Fprintln(to)
	if err := Table(to, palette, []string{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}, rows, true); err != nil {
		return err
	}
	events := s.Events
	if n := len(events) - lastEvents; n > 0 && !wide {
		events = events[n:]
	}
	rows = nil
	for _, e := range events {
		paint := palette.Dim
		if e.Type == corev1.EventTypeWarning {
			paint = palette.Removed
		}
		rows = append(rows, []string{Age(e.Last, now), paint(e.Type), e.Reason, e.Object, fmt.Sprint(e.Count), e.Message})
	}
	if len(rows) > 0 {
		fmt.Fprintln(to)
		if err := Table(to, palette, []string{"LAST", "EVENT", "REASON", "OBJECT", "COUNT", "MESSAGE"}, rows, true); err != nil {
			return err
		}
	}
	for _, text := range s.NotChecked {
		fmt.Fprintln(to, palette.Removed("Not checked: "+text))
	}
	return nil
}
