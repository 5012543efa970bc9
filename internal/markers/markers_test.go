// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package markers

import "testing"

func TestMarkersMustBeThereOnce(t *testing.T) {
	const begin, end = "# BEGIN a\n", "# END a\n"
	texts := map[string]string{"a": "text\n", "b": "other\n"}
	for name, document := range map[string]string{
		"none":      "text\n",
		"no end":    begin,
		"no begin":  end,
		"two":       begin + end + begin + end,
		"reversed":  end + begin,
		"same line": "text " + begin + " text\n" + end,
		"nested":    begin + "# BEGIN b\n# END b\n" + end,
		"crossed":   begin + "# END b\n",
		"unknown":   "# BEGIN c\n# END c\n",
	} {
		if got, err := Replace(document, texts); err == nil {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
}
