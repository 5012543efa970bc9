// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario reads and runs scenarios of Chainsaw, https://kyverno.github.io/chainsaw, as far as those of ToolHive that are about
// MCPServers need it: a file that says more is refused. Chainsaw itself would be some 1,700 packages to compile, and stops at
// the first operation that fails.
package scenario

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/jmespath-community/go-jmespath/pkg/binding"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// file is what Chainsaw calls a scenario's file unless it is told otherwise.
const file = "chainsaw-test.yaml"

// Scenario is one of Chainsaw's Tests.
type Scenario struct {
	// Name is its directory, below the root of all.
	Name string
	// Operations in their order.
	Operations []Operation
}

// Operation is one step of a scenario: an assertion, an apply or a script.
type Operation struct {
	// Name has the names of the step and of the file or object: "deploy-mcpserver: assert mcpserver.yaml". Scenarios may share it.
	Name string

	apply, assert []map[string]any
	// checks of the error of apply, which is none if there is no check.
	checks      []map[string]any
	script      string
	environment []value
	bindings    binding.Bindings
}

// test is the file of a scenario. The fields from Description on are known and not used: the suite has its own timeouts, goes on after a
// failure, deletes all that was applied, and evaluates expressions everywhere.
type test struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Bindings    []value `json:"bindings"`
		Steps       []step  `json:"steps"`
		Description string  `json:"description"`
		Template    bool    `json:"template"`
		Timeouts    any     `json:"timeouts"`
		Catch       any     `json:"catch"`
	} `json:"spec"`
}

type step struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	SkipDelete  bool   `json:"skipDelete"`
	Try         []struct {
		Apply  *resources `json:"apply"`
		Assert *resources `json:"assert"`
		Script *struct {
			Env     []value `json:"env"`
			Content string  `json:"content"`
		} `json:"script"`
	} `json:"try"`
}

// resources are those in a file, or one.
type resources struct {
	File     string         `json:"file"`
	Resource map[string]any `json:"resource"`
	Expect   []struct {
		Check map[string]any `json:"check"`
	} `json:"expect"`
}

// value has a name. It may be an expression.
type value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Names returns the names of all scenarios, sorted.
func Names(files fs.FS) (names []string, err error) {
	err = fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Base(name) == file {
			names = append(names, path.Dir(name))
		}
		return err
	})
	return names, err
}

// Read reads a scenario, and the files that it names.
func Read(files fs.FS, name string) (*Scenario, error) {
	var in test
	text, err := fs.ReadFile(files, path.Join(name, file))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &in)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	bindings := binding.NewBindings()
	for _, b := range in.Spec.Bindings {
		bindings = bindings.Register("$"+b.Name, b.Value)
	}
	s := &Scenario{Name: name}
	for _, step := range in.Spec.Steps {
		for _, try := range step.Try {
			o := Operation{bindings: bindings}
			switch {
			case try.Apply != nil:
				o.apply, err = try.Apply.read(files, name)
				for _, expect := range try.Apply.Expect {
					o.checks = append(o.checks, expect.Check)
				}
				o.Name = "apply " + try.Apply.name()
			case try.Assert != nil:
				o.assert, err = try.Assert.read(files, name)
				o.Name = "assert " + try.Assert.name()
			case try.Script != nil:
				o.script, o.environment = try.Script.Content, try.Script.Env
				o.Name = "script"
			default:
				err = errors.New("it has no operation")
			}
			if err != nil {
				return nil, fmt.Errorf("%s, step %s: %w", name, step.Name, err)
			}
			o.Name = step.Name + ": " + o.Name
			s.Operations = append(s.Operations, o)
		}
	}
	return s, nil
}

// name is the file, or the kind and the name of the object.
func (r *resources) name() string {
	metadata, _ := r.Resource["metadata"].(map[string]any)
	return cmp.Or(r.File, fmt.Sprintf("%v %v", r.Resource["kind"], metadata["name"]))
}

// read returns the objects; there is at least one.
func (r *resources) read(files fs.FS, dir string) (objects []map[string]any, err error) {
	if r.File == "" {
		if r.Resource == nil {
			return nil, errors.New("it has neither a file nor a resource")
		}
		return []map[string]any{r.Resource}, nil
	}
	text, err := fs.ReadFile(files, path.Join(dir, r.File))
	if err != nil {
		return nil, err
	}
	documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var object map[string]any
		if err == nil {
			err = yaml.Unmarshal(document, &object)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.File, err)
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s has no object", r.File)
	}
	return objects, nil
}
