// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
)

// Conflicts is the answer of conflicts, for programs as well. Names and meanings of its fields stay; more may come.
type Conflicts struct {
	// Servers are the MCPServers with conflicts.
	Servers []ServerConflicts `json:"servers"`
	// Configs are the objects with conflicts that MCPServers refer to.
	Configs []ConfigConflicts `json:"configs,omitempty"`
	// NotChecked says what could not be looked at, and why.
	NotChecked []string `json:"notChecked,omitempty"`
}

// ConfigConflicts are the conflicts about one object that MCPServers refer to.
type ConfigConflicts struct {
	Namespace string `json:"namespace"`
	// Object as kubectl takes it, such as mcpoidcconfig.toolhive.stacklok.dev/corp.
	Object string `json:"object"`
	// Told is what the operator reports about it, in the condition FieldsOwned of the object; nil when it does not.
	Told *Told `json:"told,omitempty"`
	// Fields that are contested.
	Fields []ContestedField `json:"fields"`
	// End says how the conflict ends, and Clear is the command that it takes; empty for none.
	End   string `json:"end"`
	Clear string `json:"clear,omitempty"`
}

// ServerConflicts are the conflicts about one MCPServer's children.
type ServerConflicts struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Told is what the operator reports about it, in the condition FieldsOwned, or in Applied with the reason Altered; nil when it has not
	// reported any yet.
	Told *Told `json:"told,omitempty"`
	// Fields that are contested.
	Fields []ContestedField `json:"fields"`
	// Take is the command that would settle all of it, and Yield the one that would settle what can be left to others; empty for nothing.
	Take  string `json:"take,omitempty"`
	Yield string `json:"yield,omitempty"`
}

// Told is a condition.
type Told struct {
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// ContestedField is a field for which the operator wants a different value than another field manager has set.
type ContestedField struct {
	// Object as kubectl takes it, such as deployment.apps/web.
	Object string `json:"object"`
	Path   string `json:"path"`
	// Writer is the operator's field manager.
	Writer string    `json:"writer"`
	Owners []Manager `json:"owners"`
	// Theirs is the present value, Ours the one that the operator wants.
	Theirs any `json:"theirs"`
	Ours   any `json:"ours"`
	// Leavable is set when something is settled if the field is left to its owners, see desired.Leavable.
	Leavable bool `json:"-"`
}

// ContestedFields are contested fields for programs.
func ContestedFields(all []desired.Contested) (fields []ContestedField) {
	leavable := map[desired.Dispute]bool{}
	for _, group := range desired.Disputes(all) {
		leavable[group[0].Dispute()] = desired.Leavable(group)
	}
	for _, c := range all {
		field := ContestedField{
			Object: c.Object.String(), Path: c.Path, Writer: c.Writer, Theirs: c.Theirs, Ours: c.Ours, Leavable: leavable[c.Dispute()],
		}
		for _, owner := range c.Owners {
			field.Owners = append(field.Owners, ManagerOf(owner))
		}
		fields = append(fields, field)
	}
	return fields
}

// ManagerOf returns an owner for programs.
func ManagerOf(o ownership.Owner) Manager {
	m := Manager{Manager: o.Manager, Operation: string(o.Operation), Subresource: o.Subresource, Side: string(fieldowners.SideOf(o))}
	if !o.Since.IsZero() {
		m.Time = new(o.Since.UTC())
	}
	return m
}

// Label returns a manager in words.
func (m Manager) Label() string {
	if m.Manager == "" && m.Operation == "" {
		return "an unknown client"
	}
	return fmt.Sprintf("%s (%s)", m.Manager, strings.TrimSuffix(m.Operation+"/"+m.Subresource, "/"))
}

// Nothing says that nothing was found, where all could be looked at, or only a part.
func Nothing(to io.Writer, what string, all bool) error {
	where := ""
	if !all {
		where = " in what could be looked at"
	}
	_, err := fmt.Fprintf(to, "No %s%s.\n", what, where)
	return err
}

// Print shows the conflicts for humans. Wide shows whole values and the operator's writers.
func (c Conflicts) Print(to io.Writer, palette Palette, now time.Time, wide bool) error {
	if len(c.Servers)+len(c.Configs) == 0 {
		return Nothing(to, "conflicts", len(c.NotChecked) == 0)
	}
	separator := ""
	head := func(object, namespace string, told *Told, untold string) {
		if told != nil {
			untold = ": reported " + Age(told.Since, now) + " ago"
		}
		fmt.Fprint(to, separator)
		fmt.Fprintln(to, palette.Bold(fmt.Sprintf("%s (namespace %s)", object, namespace))+untold)
		separator = "\n"
	}
	for _, server := range c.Servers {
		head("mcpserver/"+server.Name, server.Namespace, server.Told, ": the operator has not reported it yet")
		if len(server.Fields) == 0 {
			line(to, "%s", server.Told.Message)
			continue
		}
		if err := contested(server.Fields).table(to, palette, now, wide); err != nil {
			return err
		}
		contested(server.Fields).settlements(to, server.Take, server.Yield)
	}
	for _, config := range c.Configs {
		head(config.Object, config.Namespace, config.Told, "")
		if err := contested(config.Fields).table(to, palette, now, wide); err != nil {
			return err
		}
		line(to, "%s.", config.End)
		if config.Clear != "" {
			fmt.Fprintf(to, "Clear it:         %s\n", config.Clear)
		}
	}
	return nil
}

// contested are the fields in a table.
type contested []ContestedField

// settlements prints the commands that settle the contested fields; yield is empty where none can be left to others.
func (c contested) settlements(to io.Writer, take, yield string) {
	fmt.Fprintf(to, "Take ownership:   %s\n", take)
	switch {
	case yield == "":
	case slices.ContainsFunc(c, func(f ContestedField) bool { return !f.Leavable }):
		fmt.Fprintf(to, "Leave some of it: %s\n", yield)
	default:
		fmt.Fprintf(to, "Leave it:         %s\n", yield)
	}
}

func (c contested) table(to io.Writer, palette Palette, now time.Time, wide bool) error {
	heads := []string{"OBJECT", "FIELD", "HELD BY", "SINCE", "THEIRS", "OURS"}
	if wide {
		heads = append(heads, "WRITER")
	}
	var rows [][]string
	for _, f := range c {
		var by, since []string
		for _, m := range f.Owners {
			by = append(by, m.Label())
			since = append(since, Age(ptr.Deref(m.Time, time.Time{}), now))
		}
		cells := []string{f.Object, f.Path, strings.Join(by, ", "), strings.Join(since, ", "), Value(f.Theirs, !wide), Value(f.Ours, !wide)}
		if wide {
			cells = append(cells, f.Writer)
		}
		rows = append(rows, cells)
	}
	return Table(to, palette, heads, rows, wide)
}
