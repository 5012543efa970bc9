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
access action actions admission annotation api applier apply attempt backoff budget cache cached caches canonical cause change changes
check child children class classes classify client clients cluster compact condition config configs configuration configurations content
controller controllers count created data decide decision default defaults delete deletion deletions deployment difference digest dispatch
doc dry edit edits entry equal error errors event events execute extract failing failure field fields file files finalizer flag fleeting
func generation group handler handlers identity indexer informer informers inherit inheritance inputs item key kind kinds label levels
limit limiter list live manager managers map maps member members memory merge message messages meta metadata metric metrics mode mutation
name named namespace node number object objects observed observer operator options order outcome outdated own owner owners ownership page
pair pairs panic panics pass patch path pending plan planned pod pods policy precondition preconditions process progress prune pruning
queries queue read reader recorded recorder recovery reduce reducer ref reference referenced references referrer referrers refusal renamed
replica replicas request requests resource response result results retries retry return rollout rollouts run scale scaling scope selection
selector server servers service set settled shard since snapshot source sources spec state statefulset states status step steps store
stores string sync table target targets text texts tier time trace tracker transport turns union unions unset update use user value values
version versions wait waits wanted watch watches workload workloads write writer writers
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
		one := strings.TrimSuffix(word, "s")
		return slices.Contains(strings.Fields(spoken), word) || slices.Contains(strings.Fields(spoken), one) || explained[word] || explained[one]
	}
	// Names of files run words together.
	var joined func(word string) bool
	joined = func(word string) bool {
		for i := 1; i < len(word); i++ {
			if known(word[:i]) && (known(word[i:]) || joined(word[i:])) {
				return true
			}
		}
		return false
	}
	check := func(what, name string) {
		for _, word := range wordsOf(name) {
			if !known(word) && !joined(word) {
				t.Errorf("%s %s: explain %q in docs/glossary.md, or use a word that is there", what, name, word)
			}
		}
	}
	for _, folder := range packages {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
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
