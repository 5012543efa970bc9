// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

// explainedReference is an object that fields come from, for programs as well.
type explainedReference struct {
	// Kind and Name of the object, and the Field of the MCPServer that refers to it, such as spec.oidcConfigRef.
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Field string `json:"field"`
	// Server is the MCPServer.
	Server string `json:"server"`
	// Fields are the paths of what comes from it, of what was asked for.
	Fields []string `json:"fields"`
}

// references returns which fields of a child, at a path or above or below it, come from the objects that its MCPServer refers
// to. An empty path means all.
func (o *explainOptions) references(object apply.ObjectRef, path string) ([]explainedReference, error) {
	if err := o.connect(); err != nil {
		return nil, err
	}
	object.Namespace = o.client.Namespace
	server, err := o.serverOf(object)
	if err != nil {
		return nil, err
	}
	settings, err := o.settingsFor(server)
	if err != nil {
		return nil, err
	}
	in, children, err := o.client.Look(server, settings.Options)
	if err != nil {
		return nil, err
	}
	if children.Child(object) == nil {
		return nil, fmt.Errorf("%s is none of the children of MCPServer %s", object, server.Name)
	}
	origins, held, err := desired.Origins(in, object)
	if err != nil {
		return nil, fmt.Errorf("nothing is written for MCPServer %s: %w", server.Name, err)
	}
	if len(held) > 0 {
		o.noteHeld(server, &desired.Plan{Held: held, Unread: in.References.Unread()})
	}
	var all []explainedReference
	for _, origin := range origins {
		if fields := fieldsAt(origin.Fields, path); len(fields) > 0 {
			all = append(all, explainedReference{
				Kind: origin.Kind, Name: origin.Name, Field: origin.Field, Server: "mcpserver/" + server.Name, Fields: fields,
			})
		}
	}
	return all, nil
}

// serverOf returns the MCPServer that an object is a child of by its name.
func (o *explainOptions) serverOf(object apply.ObjectRef) (*v1beta1.MCPServer, error) {
	for _, name := range inventory.Servers(object.Kind, object.Name) {
		server, err := o.client.Server(name)
		if apply.IsAbsent(err) {
			continue
		}
		return server, err
	}
	return nil, fmt.Errorf("%s has the name of no child of an MCPServer that is there", object)
}

// fieldsAt returns the paths of a set that are at another one, above it or below it.
func fieldsAt(set *fieldpath.Set, path string) (fields []string) {
	set.Iterate(func(found fieldpath.Path) {
		text := found.String()
		if path == "" || atOrBelow(text, []string{path}) || atOrBelow(path, []string{text}) {
			fields = append(fields, text)
		}
	})
	return fields
}

// showReferences shows them as a table, with a row for each field.
func showReferences(to io.Writer, palette printers.Palette, references []explainedReference) error {
	if len(references) == 0 {
		return nil
	}
	var rows [][]string
	for _, ref := range references {
		for i, field := range ref.Fields {
			row := []string{strings.ToLower(ref.Kind) + "/" + ref.Name, ref.Field + " of " + ref.Server, field}
			if i > 0 {
				row[0], row[1] = "", ""
			}
			rows = append(rows, row)
		}
	}
	fmt.Fprintln(to)
	return printers.Table(to, palette, []string{"COMES FROM", "BY", "FIELD"}, rows)
}
