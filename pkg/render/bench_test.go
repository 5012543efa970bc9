// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import "testing"

// BenchmarkRender is the cost of one sync's rendering: of the smallest MCPServer, and of one that sets all.
func BenchmarkRender(b *testing.B) {
	for name, in := range map[string]Input{"small": {Server: newServer()}, "full": fullInput(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Render(in, fullOptions); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
