// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// spoken are words of Kubernetes, of its Go libraries and of Go that mean here what they mean there.
const spoken = `
access action actions annotation api applier apply backoff budget cache caches canonical change changes child children class classes classify
client clients cluster condition config configs configuration configurations controller controllers count created data default defaults delete
deletion deletions deployment difference digest dispatch doc edit edits entry equal error errors event events failing failure field fields
file files finalizer flag generation group handler handlers indexer informer informers inputs item key kind kinds label levels limiter list
live manager managers map maps member members merge message messages metadata mode mutation name named namespace node number object observed
observer operator options order outcome owner owners ownership page pass patch path pod pods policy precondition preconditions process queries
queue read reader recorder reduce reducer ref reference references referrer referrers refusal replica replicas request requests resource
response result results retries retry return rollout rollouts scope selection selector server servers service set shard source sources spec
state states statefulset status steps step store stores string sync table target text texts time trace tracker transport turns unions unset
update value values version versions wait watch watches workload workloads write writer writers wanted union pairs pair tier
`

// most is how many words the glossary may have.
const most = 40

// packages are those whose types and files are called by words that a reader knows.
var packages = []string{"pkg/controller", "pkg/controller/observed", "pkg/configcontroller", "pkg/apply"}

// entries returns the words of the glossary, and how many entries it has.
func entries(t *testing.T) (words map[string]bool, count int) {
	t.Helper()
	text, err := os.ReadFile("../glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	words = map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !ok || cell == "Word" || !strings.HasPrefix(line, "| ") {
			continue
		}
		count++
		for word := range strings.FieldsFuncSeq(strings.ToLower(cell), func(r rune) bool { return !unicode.IsLetter(r) }) {
			words[word] = true
		}
	}
	return words, count
}

var humps = regexp.MustCompile(`[A-Z]+(?:[a-z]+|$)|[a-z]+`)

// wordsOf returns the words that a name in Go consists of.
func wordsOf(name string) []string {
	words := humps.FindAllString(name, -1)
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	return words
}

// Each type and file of the packages that decide and write is called by words of Kubernetes, or by such as the glossary explains.
func TestTypesAndFilesAreCalledByKnownWords(t *testing.T) {
	explained, count := entries(t)
	if count > most {
		t.Errorf("the glossary has %d entries, more than the %d that a reader remembers", count, most)
	}
	known := func(word string) bool {
		return slices.Contains(strings.Fields(spoken), word) || explained[word] || explained[strings.TrimSuffix(word, "s")]
	}
	check := func(what, name string) {
		for _, word := range wordsOf(name) {
			if !known(word) {
				t.Errorf("%s %s: explain %q in docs/glossary.md, or use a word that is there", what, name, word)
			}
		}
	}
	for _, folder := range packages {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files: %v", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			check("file "+folder+"/", strings.TrimSuffix(filepath.Base(file), ".go"))
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range parsed.Decls {
				if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
					for _, spec := range types.Specs {
						check("type "+folder+".", spec.(*ast.TypeSpec).Name.Name)
					}
				}
			}
		}
	}
}
