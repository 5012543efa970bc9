// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldowners

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Whatever is in a value or a key, the object can be shown, and is the same when it is read again.
func TestEveryCharacterCanBeShown(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		if r == 0x3000 {
			r = 0xfff0
		}
		if r == 0x10000 {
			r = 0x10fff0
		}
		content := map[string]any{"a": "x" + string(r) + "y", "x" + string(r) + "y": "a"}
		text, err := YAML(content)
		if err != nil {
			t.Fatalf("%U: %v", r, err)
		}
		var got map[string]any
		if err := yaml.Unmarshal(text, &got); err != nil {
			t.Fatalf("%U: %v in %q", r, err, text)
		}
		if diff := cmp.Diff(content, got); diff != "" {
			t.Errorf("%U becomes %q", r, text)
		}
	}
}
