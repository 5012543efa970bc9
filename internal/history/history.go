// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history describes what users and others did to a cluster, and what came of it, in a form in which a simulated cluster
// and a real one can be compared.
package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// History is what was done in one namespace, which was empty, and what came of it.
type History struct {
	// Namespace is its name. Content that has the name in it, and what is called after that content, differ with it.
	Namespace string `json:"namespace"`
	// Acts are what users and others asked for. The cluster came to rest after each.
	Acts []Act `json:"acts"`
}

// Act is a request that neither the operator nor a controller of Kubernetes made.
type Act struct {
	// Verb is create, patch or delete.
	Verb string `json:"verb"`
	// Resource is of what kind the object is.
	Resource schema.GroupVersionResource `json:"resource"`
	// Name of the object, and Subresource of it that a patch writes; empty for the object itself.
	Name        string `json:"name"`
	Subresource string `json:"subresource,omitempty"`
	// Manager owns what the request sets.
	Manager string `json:"manager"`
	// PatchType is the content type of a patch.
	PatchType types.PatchType `json:"patchType,omitempty"`
	// Force is that of an apply, which is a patch of its own type.
	Force bool `json:"force,omitempty"`
	// Body is the object, the patch, or the options of the deletion.
	Body json.RawMessage `json:"body"`
	// Changes are what had become of the state when the cluster was at rest again.
	Changes State `json:"changes"`
}

// String names the request.
func (a *Act) String() string {
	return fmt.Sprintf("%s %ss %s %s", a.Manager, a.Verb, a.Resource.Resource, a.Name)
}

// JSON returns what a file has of a history.
func (h *History) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(h, "", "  ")
	return append(text, '\n'), err
}

// Write writes a history to a file.
func (h *History) Write(file string) error {
	text, err := h.JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// Read returns the histories in the files of a directory by their names, which are those of the files without the extension.
func Read(dir string) (map[string]*History, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]*History{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		h := &History{}
		if err := json.Unmarshal(text, h); err != nil {
			return nil, fmt.Errorf("%s is no history: %w", file, err)
		}
		name := filepath.Base(file)
		all[name[:len(name)-len(".json")]] = h
	}
	return all, nil
}
