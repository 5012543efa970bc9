// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/internal/yamlsafe"
)

// YAML returns content as YAML. It escapes characters that JSON allows and YAML does not, so that one such character in a
// user's value does not hide the rest.
func YAML(content any) ([]byte, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(yamlsafe.Escape(text))
}
