// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/takeover"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// Takeovers is the answer of takeover --preview, for programs as well. Names and meanings of its fields stay; more may
// come.
type Takeovers struct {
	// Operators of ToolHive that still run, and look after one of the MCPServers.
	Operators []cluster.Running `json:"operators"`
	Servers   []ServerTakeover  `json:"servers"`
	// Settings of ToolHive's operators, running or not, that Freehold's operator has otherwise. They are no obstacle.
	Settings []cluster.OperatorSetting `json:"settings,omitempty"`
	// NotChecked says what could not be looked at, and why.
	NotChecked []string `json:"notChecked,omitempty"`
}

// ServerTakeover is what a takeover of one MCPServer would change.
type ServerTakeover struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Standing says which operator the MCPServer belongs to: ToolHive, Freehold or Nobody.
	Standing string `json:"standing"`
	// Blockers keep it, or a part of it, from being taken over.
	Blockers []Blocker `json:"blockers"`
	// Contested are fields that others than ToolHive hold at another value; Take and Yield are the commands that settle it.
	Contested []ContestedField `json:"contested"`
	Take      string           `json:"take,omitempty"`
	Yield     string           `json:"yield,omitempty"`
	// Pods says for each workload whether its pods are replaced.
	Pods []PodsTakeover `json:"pods"`
	// Objects in the order in which they are written.
	Objects []ObjectTakeover `json:"objects"`
	// Notices are worth knowing.
	Notices []string `json:"notices,omitempty"`
}

// Blocker is something that keeps an MCPServer, or one of its objects, from being taken over.
type Blocker struct {
	// Object in question; empty for the MCPServer as a whole.
	Object string `json:"object,omitempty"`
	// Reason is one of the reasons of conditions, or one of those below.
	Reason string `json:"reason"`
	// Message says what is wrong and, where there is something, what to do about it.
	Message string `json:"message"`
}

// Reasons of a Blocker that no condition has.
const (
	// BlockerUnreadable is an object that the user may not read.
	BlockerUnreadable = "Unreadable"
	// BlockerRefused is a write that the API server would not accept.
	BlockerRefused = "Refused"
	// BlockerContested is a field that another field manager owns.
	BlockerContested = "Contested"
)

// PodsTakeover says what happens to the pods of a workload.
type PodsTakeover struct {
	// Of is proxy or backend.
	Of     string `json:"of"`
	Object string `json:"object"`
	Pods   int64  `json:"pods"`
	// Replaced is set when they are replaced, in one rollout, because of the fields.
	Replaced bool     `json:"replaced"`
	Because  []string `json:"because,omitempty"`
}

// ObjectTakeover says what changes in one object.
type ObjectTakeover struct {
	Object string `json:"object"`
	// When it is written.
	When string `json:"when"`
	// Action is Change, None, Create or Delete. None passes the claims to the operator's writers all the same.
	Action string `json:"action"`
	// Unchecked is set when the API server did not check it; defaults that it fills in may then be shown as changes.
	Unchecked bool          `json:"unchecked,omitempty"`
	Changes   []FieldChange `json:"changes,omitempty"`
	// Free are fields that have no owner afterwards, and that keep their values.
	Free []FreeField `json:"free,omitempty"`
}

// FieldChange is a field that gets another value.
type FieldChange = takeover.Change

// FreeField is a field that has no owner afterwards.
type FreeField struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Actions of objects.
const (
	ActionChange = "Change"
	ActionNone   = "None"
	ActionCreate = "Create"
	ActionDelete = "Delete"
)

// Hindered reports whether anything blocks a takeover or is contested.
func (t Takeovers) Hindered() bool {
	return len(t.Operators) > 0 || slices.ContainsFunc(t.Servers, func(s ServerTakeover) bool { return s.hindered() })
}

func (s ServerTakeover) hindered() bool { return len(s.Blockers) > 0 || len(s.Contested) > 0 }

// Print shows it for humans. Wide shows whole values, and why fields change.
func (t Takeovers) Print(to io.Writer, palette Palette, now time.Time, wide bool) error {
	Operators(to, palette, t.Operators)
	for _, text := range t.NotChecked {
		fmt.Fprintln(to, palette.Removed("not checked")+": "+printable.Text(text))
	}
	for _, setting := range t.Settings {
		line(to, "%s", settingSentence(setting))
	}
	for i, server := range t.Servers {
		if i > 0 || len(t.Operators)+len(t.NotChecked)+len(t.Settings) > 0 {
			fmt.Fprintln(to)
		}
		if err := server.print(to, palette, now, wide); err != nil {
			return err
		}
	}
	if len(t.Servers) != 1 {
		fmt.Fprintf(to, "\n%s\n", t.summary())
	}
	return nil
}

// Operators prints the operators that run, and how to stop them.
func Operators(to io.Writer, palette Palette, operators []cluster.Running) {
	for _, o := range operators {
		fmt.Fprintln(to, palette.Removed(fmt.Sprintf("%s's operator runs: %s in namespace %s: %s.", o.Product, o.Object, o.Namespace, o.How)))
		if o.Stop != "" {
			fmt.Fprintln(to, "To stop it:", o.Stop)
		}
	}
}

// settingSentence says what differs, and what to do about it.
func settingSentence(s cluster.OperatorSetting) string {
	if s.Hidden {
		return fmt.Sprintf("%s of ToolHive's operator (%s in namespace %s) has a value that is not in the Deployment; Freehold's operator has %s. "+
			"If the two differ, give Freehold's operator the same value before the takeover.", s.Variable, s.Object, s.Namespace, s.Has)
	}
	return fmt.Sprintf("ToolHive's operator (%s in namespace %s) has %s=%s; Freehold's has %s. To keep that, give Freehold's operator "+
		"%s, or the same variable, before the takeover.", s.Object, s.Namespace, s.Variable, s.Value, s.Has, s.Give)
}

func (t Takeovers) summary() string {
	var ready, hindered, other, proxies, backends int
	for _, s := range t.Servers {
		switch {
		case s.hindered():
			hindered++
		case s.Standing == "ToolHive":
			ready++
		default:
			other++
		}
		for _, p := range s.Pods {
			switch {
			case !p.Replaced:
			case p.Of == "proxy":
				proxies++
			default:
				backends++
			}
		}
	}
	return fmt.Sprintf("MCPServers: %d; %d can be taken over, %d hindered, %d with nothing to take over. Rollouts: %d of proxies, %d of backends.",
		len(t.Servers), ready, hindered, other, proxies, backends)
}

func (s ServerTakeover) headline() string {
	switch {
	case s.Standing == "Freehold" && !s.hindered():
		return "Freehold owns it already"
	case s.Standing == "Nobody":
		return "ToolHive has created nothing for it; Freehold creates it"
	case len(s.Blockers) > 0:
		return "something blocks the takeover"
	case len(s.Contested) > 0:
		return "another field manager owns fields of it"
	}
	return "it can be taken over"
}

func (s ServerTakeover) print(to io.Writer, palette Palette, now time.Time, wide bool) error {
	fmt.Fprintln(to, palette.Bold(fmt.Sprintf("mcpserver/%s (namespace %s)", s.Name, s.Namespace))+": "+s.headline())
	for _, b := range s.Blockers {
		text := b.Reason + ": " + b.Message
		if b.Object != "" {
			text = b.Object + ": " + text
		}
		fmt.Fprintln(to, palette.Removed("  "+text))
	}
	for _, p := range s.Pods {
		line(to, "  %s", p.sentence())
	}
	for _, notice := range s.Notices {
		line(to, "  %s", notice)
	}
	if len(s.Contested) > 0 {
		if err := contested(s.Contested).table(to, palette, now, wide); err != nil {
			return err
		}
		contested(s.Contested).settlements(to, s.Take, s.Yield)
	}
	return s.changes(to, palette, wide)
}

func (p PodsTakeover) sentence() string {
	count := fmt.Sprintf("%d pods are", p.Pods)
	if p.Pods == 1 {
		count = "1 pod is"
	}
	if !p.Replaced {
		return fmt.Sprintf("%s (%s): no pod restarts", p.Of, p.Object)
	}
	fields := fmt.Sprintf("%d fields of its template change", len(p.Because))
	if len(p.Because) == 1 {
		fields = p.Because[0] + " changes"
	}
	return fmt.Sprintf("%s (%s): %s replaced, in one rollout, because %s", p.Of, p.Object, count, fields)
}

// changes prints tables of the changes, one for each moment.
func (s ServerTakeover) changes(to io.Writer, palette Palette, wide bool) error {
	heads := []string{"OBJECT", "FIELD", "NOW", "AFTERWARDS"}
	if wide {
		heads = append(heads, "WHY")
	}
	var same []string
	for objects := s.Objects; len(objects) > 0; {
		when, end := objects[0].When, 1
		for end < len(objects) && objects[end].When == when {
			end++
		}
		rows, alone := rowsOf(objects[:end], wide)
		same, objects = append(same, alone...), objects[end:]
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintln(to, palette.Dim(when+":"))
		if err := Table(to, palette, heads, rows, wide); err != nil {
			return err
		}
	}
	if len(same) > 0 {
		line(to, "as they are: %s", strings.Join(same, ", "))
	}
	return nil
}

// rowsOf returns the rows of a table of changes, in which an object is named once. same are the objects that have none.
func rowsOf(objects []ObjectTakeover, wide bool) (rows [][]string, same []string) {
	for _, o := range objects {
		cells, name := o.cells(wide), o.Object
		if len(cells) == 0 {
			same = append(same, name)
		}
		for _, c := range cells {
			rows, name = append(rows, append([]string{name}, c...)), ""
		}
	}
	return rows, same
}

// cells returns the rows of one object: field, value before and after, and why. The operator's own marks are for the wide form.
func (o ObjectTakeover) cells(wide bool) [][]string {
	var cells [][]string
	switch o.Action {
	case ActionCreate:
		cells = append(cells, []string{"(all)", "-", "is made", ""})
	case ActionDelete:
		cells = append(cells, []string{"(all)", "is there", "is deleted", "the MCPServer does not ask for it"})
	}
	owner := -1
	for _, c := range o.Changes {
		if !wide && (strings.HasPrefix(c.Path, ".metadata.annotations."+v1beta1.AnnotationPrefix) || c.Path == ".metadata.labels."+v1beta1.LabelAppManagedBy) {
			continue
		}
		path, _, isOwner := strings.Cut(c.Path, "[uid=")
		if !isOwner {
			cells = append(cells, []string{path, Value(c.Before, !wide), Value(c.After, !wide), c.Why})
			continue
		}
		if owner < 0 {
			// One gives way to another.
			owner = len(cells)
			cells = append(cells, []string{path, "-", "-", ""})
		}
		if c.Before != nil {
			cells[owner][1] = ownerName(c.Before)
		}
		if c.After != nil {
			cells[owner][2] = ownerName(c.After)
		}
	}
	for _, f := range o.Free {
		cells = append(cells, []string{f.Path, Value(f.Value, !wide), "stays, without an owner", ""})
	}
	return cells
}

// ownerName returns an owner reference in short.
func ownerName(reference any) string {
	fields, ok := reference.(map[string]any)
	if !ok {
		return Value(reference, true)
	}
	return fmt.Sprintf("%v %v", fields["kind"], fields["name"])
}

// Handback is what a handback of one MCPServer, or of one object that MCPServers refer to, would change.
type Handback struct {
	// Object as kubectl takes it, and its namespace.
	Object, Namespace string
	// Generation of an MCPServer; 0 for another object.
	Generation int64
	// Objects that pass to ToolHive's managers, in order.
	Objects []ObjectTakeover
	// BackendChanges is set when the template of the backend's pods changes, and OnDelete when Kubernetes replaces none of them for that.
	BackendChanges, OnDelete bool
	// Blockers keep it from being done.
	Blockers []Blocker
}

// Print shows it for humans.
func (h Handback) Print(to io.Writer, palette Palette) error {
	fmt.Fprintln(to, palette.Bold(fmt.Sprintf("%s (namespace %s)", h.Object, h.Namespace))+":")
	for _, b := range h.Blockers {
		fmt.Fprintln(to, palette.Removed(fmt.Sprintf("  %s: %s: %s", b.Object, b.Reason, b.Message)))
	}
	if h.Generation == 0 {
		_, err := fmt.Fprintln(to, "  Its finalizer and its status stay, and become ToolHive's.")
		return err
	}
	backend := "no pod restarts"
	switch {
	case h.BackendChanges && h.OnDelete:
		backend = "no pod is replaced now: with the update strategy OnDelete each keeps its template until it is deleted, " +
			"or until ToolHive's runner sets another strategy. The gate opens for ToolHive's runners"
	case h.BackendChanges:
		backend = "its pods are replaced now, in one rollout: the gate opens for ToolHive's runners"
	}
	fmt.Fprintln(to, "  backend:", backend)
	fmt.Fprintln(to, "  proxy: its pods are replaced by ToolHive's operator once that runs, in one rollout")
	if h.Generation == 1 {
		fmt.Fprintln(to, "  The MCPServer was never edited, so the gate is open for Freehold's proxies too: start ToolHive's operator soon.")
	}
	rows, alone := rowsOf(h.Objects, false)
	if len(rows) > 0 {
		if err := Table(to, palette, []string{"OBJECT", "FIELD", "NOW", "AFTERWARDS"}, rows, false); err != nil {
			return err
		}
	}
	fmt.Fprintln(to, "The annotations and conditions of Freehold go, and what it owns becomes ToolHive's.")
	if len(alone) > 0 {
		line(to, "Nothing else changes of %s", strings.Join(alone, ", "))
	}
	return nil
}
