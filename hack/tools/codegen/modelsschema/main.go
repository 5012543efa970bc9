// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command modelsschema prints the OpenAPI models of Freehold's API types as a Swagger 2.0 document.
// applyconfiguration-gen embeds it in the generated apply configurations: Extract needs the list types
// and map keys to find the fields of an object that a manager owns.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/freehold-dev/freehold/generated/openapi"
)

func main() {
	log.SetFlags(0)
	ref := func(name string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + modelName(name))
	}
	definitions := spec.Definitions{}
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		schema := definition.Schema
		if v2, ok := schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			schema = v2
		}
		definitions[modelName(name)] = schema
	}
	document := spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "Freehold API models", Version: "unversioned"}},
		Paths:       &spec.Paths{Paths: map[string]spec.PathItem{}},
		Definitions: definitions,
	}}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		log.Fatalf("cannot write the models: %v", err)
	}
}

// modelName turns a Go type path into the name by which applyconfiguration-gen looks a model up. The
// types of apimachinery announce their model names themselves; those have no slash and stay as they are.
func modelName(name string) string {
	if !strings.Contains(name, "/") {
		return name
	}
	return util.ToRESTFriendlyName(name)
}
