// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package yamlsafe

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// As a value and as a key, each character below U+10000 arrives, and some above.
func TestEveryCharacterArrives(t *testing.T) {
	document := map[string]string{"\U0001f600": "\U0010ffff"}
	for c := rune(0); c <= 0xffff; c++ {
		if c >= 0xd800 && c < 0xe000 {
			continue // A half of a pair is no character.
		}
		document["a"+string(c)+"b"] = "a" + string(c) + "b"
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		t.Fatal(err)
	}
	var read map[string]string
	if err := yaml.UnmarshalStrict(Escape(text.Bytes()), &read); err != nil {
		t.Fatal(err)
	}
	if len(read) != len(document) {
		t.Errorf("%d of %d values were read", len(read), len(document))
	}
	for key, value := range document {
		if read[key] != value {
			t.Errorf("%q was read as %q", value, read[key])
		}
	}
}

// FuzzEscape: JSON that the API server reads as YAML means what it means as JSON.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{`{}`, `{"a\u0085":["` + "\x7f\u0085\u2028\uffff" + `",1e3,null]}`, `"` + "\ufeff\u0090" + `"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		// As clients encode it: other JSON has spaces and escapes that they do not write.
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		escaped := Escape(text)
		var same, asYAML any
		if err := json.Unmarshal(escaped, &same); err != nil {
			t.Fatalf("%s is no JSON: %v", escaped, err)
		}
		if err := yaml.Unmarshal(escaped, &asYAML); err != nil {
			t.Fatalf("%s is no YAML: %v", escaped, err)
		}
		if !reflect.DeepEqual(same, value) || !reflect.DeepEqual(asYAML, value) {
			t.Errorf("%s became %v as JSON, %v as YAML", text, same, asYAML)
		}
	})
}
