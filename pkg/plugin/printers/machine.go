// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
)

// Formats for programs.
const (
	JSON = "json"
	YAML = "yaml"
)

// Machine writes something in a format for programs, JSON or YAML.
func Machine(to io.Writer, format string, what any) error {
	if format == YAML {
		text, err := fieldowners.YAML(what)
		if err != nil {
			return err
		}
		_, err = to.Write(text)
		return err
	}
	text, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s\n", text)
	return err
}

// Ownership is the answer of owners for programs. Names and meanings of its fields stay; more may come.
type Ownership struct {
	// Objects that were asked for.
	Objects []ObjectOwnership `json:"objects"`
}

// ObjectOwnership is the field ownership of one object.
type ObjectOwnership struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Managers are the entries of the object's managedFields.
	Managers []Manager `json:"managers"`
	// Fields of the object that have a value and none below them, and those above that are owned themselves. Those that no
	// field manager can own, such as its name, are not among them.
	Fields []FieldOwnership `json:"fields"`
}

// Manager is one entry of managedFields.
type Manager struct {
	Manager     string     `json:"manager"`
	Operation   string     `json:"operation"`
	Subresource string     `json:"subresource,omitempty"`
	APIVersion  string     `json:"apiVersion,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
	// Side of the manager: freehold, user or system.
	Side string `json:"side"`
}

// FieldOwnership lists the owners of one field.
type FieldOwnership struct {
	Path string `json:"path"`
	// Value of a field that has none below it.
	Value any `json:"value,omitempty"`
	// State is Owned or Unowned.
	State string `json:"state"`
	// PartOf is the path of the atomic field that this one is a part of.
	PartOf string `json:"partOf,omitempty"`
	// Owners of the field, in the order of the object's managers.
	Owners []Manager `json:"owners,omitempty"`
}

// OwnershipOf returns the answer for programs.
func OwnershipOf(reports []*fieldowners.Report) Ownership {
	answer := Ownership{Objects: []ObjectOwnership{}}
	for _, r := range reports {
		o := ObjectOwnership{
			APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
			Managers: []Manager{}, Fields: []FieldOwnership{},
		}
		for _, e := range r.Entries {
			m := ManagerOf(e.Owner)
			m.APIVersion = e.APIVersion
			o.Managers = append(o.Managers, m)
		}
		for _, f := range r.Fields {
			if f.State == fieldowners.Container || f.State == fieldowners.Unownable || !f.Leaf && f.Whole != "" {
				continue
			}
			field := FieldOwnership{Path: f.Path, Value: f.Value, State: string(f.State), PartOf: f.Whole}
			for _, i := range f.Owners {
				field.Owners = append(field.Owners, o.Managers[i])
			}
			o.Fields = append(o.Fields, field)
		}
		answer.Objects = append(answer.Objects, o)
	}
	return answer
}
