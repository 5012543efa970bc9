// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// root is the root of the module.
const root = "../.."

// kinds are what the names of constants begin with that are promised as stable.
var kinds = []string{"Condition", "Reason", "EventReason", "Annotation", "Label", "Finalizer"}

func kindOf(c constant) string {
	i := slices.IndexFunc(kinds, func(kind string) bool { return strings.HasPrefix(c.name, kind) })
	if i < 0 || c.value == v1beta1.AnnotationPrefix {
		return ""
	}
	return kinds[i]
}

// promised are the constants of the API that belong into the reference.
func promised(t *testing.T) []constant {
	t.Helper()
	found, err := constants(filepath.Join(root, api))
	if err != nil {
		t.Fatal(err)
	}
	found = slices.DeleteFunc(found, func(c constant) bool { return kindOf(c) == "" })
	if len(found) < 100 {
		t.Fatalf("only %d constants were found", len(found))
	}
	return found
}

// Every string constant of the API is of a kind that the reference lists, or a value that is named here.
func TestEveryConstantIsOfAKind(t *testing.T) {
	found, err := constants(filepath.Join(root, api))
	if err != nil {
		t.Fatal(err)
	}
	values := []string{v1beta1.AnnotationPrefix, v1beta1.TakeoverApproved, v1beta1.BackendRolloutPaused}
	for _, c := range found {
		if kindOf(c) == "" && strings.Contains(c.value, ".") && !slices.Contains(values, c.value) {
			t.Errorf("%s = %q is of no kind that the reference lists", c.name, c.value)
		}
	}
}

func TestConstantsAreNamedAfterTheirValues(t *testing.T) {
	seen := map[string]string{}
	for _, c := range promised(t) {
		kind := kindOf(c)
		if before, taken := seen[kind+c.value]; taken {
			t.Errorf("%s and %s are both %q", before, c.name, c.value)
		}
		seen[kind+c.value] = c.name
		if strings.HasSuffix(kind, "Reason") && c.name != kind+c.value {
			t.Errorf("%s = %q, want the name %s%s", c.name, c.value, kind, c.value)
		}
	}
}

// A reason's comment tells where users find it.
func TestReasonsTellWhereTheyAre(t *testing.T) {
	owned := slices.Concat(v1beta1.OwnedConditions(), v1beta1.ConfigConditions(), v1beta1.GroupConditions())
	place := regexp.MustCompile(`\b([A-Za-z]+)=(True|False|Unknown)\b`)
	event := regexp.MustCompile(` is a (Normal|Warning) event: `)
	for _, c := range promised(t) {
		switch kindOf(c) {
		case "Reason":
			places := place.FindAllStringSubmatch(c.comment, -1)
			if len(places) == 0 {
				t.Errorf("the comment of %s names no condition as Type=Status: %q", c.name, c.comment)
			}
			for _, p := range places {
				if !slices.Contains(owned, p[1]) {
					t.Errorf("the comment of %s names a condition %s, which Freehold does not write", c.name, p[1])
				}
			}
		case "EventReason":
			if !event.MatchString(c.comment) {
				t.Errorf("the comment of %s tells no type of the event: %q", c.name, c.comment)
			}
		}
	}
}

var (
	// key is a key of Freehold's or ToolHive's, of an annotation, a label or a finalizer.
	key = regexp.MustCompile(`(?:^|[^\w./-])((?:[a-z]+\.)?(?:freehold\.dev|toolhive\.stacklok\.(?:dev|io))/[a-z][a-z-]*)`)
	// compound are values that are no common words, so that who writes one means the constant.
	compound = regexp.MustCompile(`^[A-Z]+[a-z]+[A-Z0-9]\w*$`)
	word     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
)

// What is promised is written down once: other packages name the constant and not its value.
func TestNoPackageSpellsAConstantOut(t *testing.T) {
	conditions := map[string]string{}
	for _, c := range promised(t) {
		if strings.Contains(kindOf(c), "Reason") || kindOf(c) == "Condition" {
			conditions[c.value] = c.name
		}
	}
	for _, directory := range []string{"cmd", "deploy", "pkg"} {
		err := files(filepath.Join(root, directory), func(path string, file *ast.File) {
			for _, literal := range literals(file) {
				switch name, known := conditions[literal.value]; {
				case key.MatchString(literal.value):
					t.Errorf("%s: %q has a key that is a constant, or should be", path, literal.value)
				case known && (literal.compared || !literal.given && compound.MatchString(literal.value)):
					t.Errorf("%s: %q is v1beta1.%s", path, literal.value, name)
				case literal.given && word.MatchString(literal.value):
					t.Errorf("%s: the reason %q is no constant", path, literal.value)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// literal is a string, and whether it is given for a reason, or compared with one.
type literal struct {
	value           string
	given, compared bool
}

func literals(file *ast.File) []literal {
	var found []literal
	add := func(e ast.Expr, as literal) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if value, err := strconv.Unquote(l.Value); err == nil {
				as.value = value
				found = append(found, as)
			}
		}
	}
	isReason := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return strings.HasPrefix(e.Name, "Reason")
		case *ast.SelectorExpr:
			return e.Sel.Name == "Reason"
		}
		return false
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false // Paths and tags.
		case *ast.BasicLit:
			add(n, literal{})
		case *ast.KeyValueExpr:
			if isReason(n.Key) {
				add(n.Value, literal{given: true})
			}
		case *ast.AssignStmt:
			for i := range min(len(n.Lhs), len(n.Rhs)) {
				if isReason(n.Lhs[i]) {
					add(n.Rhs[i], literal{given: true})
				}
			}
		case *ast.BinaryExpr:
			if isReason(n.X) {
				add(n.Y, literal{compared: true})
			}
		case *ast.ValueSpec:
			for i := range min(len(n.Names), len(n.Values)) {
				if isReason(n.Names[i]) {
					add(n.Values[i], literal{given: true})
				}
			}
		}
		return true
	})
	return found
}

// The manifests have keys, too: they are YAML, so that only their values can be compared.
func TestManifestsHaveKnownKeys(t *testing.T) {
	known := map[string]bool{}
	for _, c := range promised(t) {
		known[c.value] = true
	}
	ours := regexp.MustCompile(regexp.QuoteMeta(v1beta1.AnnotationPrefix) + `[a-z-]+`)
	seen := 0
	eachManifest(t, func(path, text string) {
		for _, found := range ours.FindAllString(text, -1) {
			seen++
			if !known[found] {
				t.Errorf("%s: %s is not among the constants of the API", path, found)
			}
		}
	})
	if seen == 0 {
		t.Error("no manifest has a key of Freehold's")
	}
}

func eachManifest(t *testing.T, visit func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			visit(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Nothing is promised that Freehold does not do, but for what it did in an earlier release.
func TestEveryConstantIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, directory := range []string{"cmd", "pkg"} {
		err := files(filepath.Join(root, directory), func(_ string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "v1beta1" {
						used[s.Sel.Name] = true
					}
				}
				return true
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	eachManifest(t, func(_, text string) {
		if strings.Contains(text, v1beta1.LabelMetricsAccess+":") {
			used["LabelMetricsAccess"] = true
		}
	})
	// The controller of Deployments sets it, and Stalled passes it on.
	used["ReasonProgressDeadlineExceeded"] = true
	all := promised(t)
	for _, c := range all {
		switch {
		case c.deprecated && used[c.name]:
			t.Errorf("%s is deprecated and used", c.name)
		case !c.deprecated && !used[c.name]:
			t.Errorf("nothing uses %s", c.name)
		}
	}
}
