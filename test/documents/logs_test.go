// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// logs is a command that shows logs, up to the next command or the end of the code that it is in.
	logs = regexp.MustCompile("\\bkubectl (?:[^`|;&\n]* )?logs(?: [^`|;&\n]*)?")
	// selects is the flag by which it takes the pods, in each way to write it.
	selects = regexp.MustCompile(`\s(-l|--selector)`)
	tails   = regexp.MustCompile(`\s--tail[= ]`)
)

// cutLogs returns the commands of a text that show the last ten lines of each pod's log: kubectl does so with a selector, unless the
// command says how many it is to show.
func cutLogs(text string) []string {
	text = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")
	return slices.DeleteFunc(logs.FindAllString(text, -1), func(command string) bool {
		return !selects.MatchString(command) || tails.MatchString(command)
	})
}

func TestCutLogs(t *testing.T) {
	text := "kubectl logs -n a -l app=x\n`kubectl -n a logs --selector=app=x --prefix` or `kubectl logs -l app=x --tail=-1`\n" +
		"kubectl logs deployment/x\nkubectl logs -lapp=x | grep --tail=1\nkubectl logs \\\n  --selector app=x --tail 5 | sort\nkubectl get pods -l app=logs\n"
	want := []string{"kubectl logs -n a -l app=x", "kubectl -n a logs --selector=app=x --prefix", "kubectl logs -lapp=x "}
	if diff := cmp.Diff(want, cutLogs(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDocumentsShowWholeLogs reads the documents, and what the alerts say. Whoever looks for the cause of a fault is to see all of the log,
// or as much as the command says.
func TestDocumentsShowWholeLogs(t *testing.T) {
	commands := 0
	err := filepath.WalkDir(Root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "_output"):
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains([]string{".md", ".yaml"}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		commands += len(logs.FindAllString(string(text), -1))
		for _, command := range cutLogs(string(text)) {
			t.Errorf("%s: %s: with a selector kubectl shows ten lines of each log; add --tail", path, command)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if commands == 0 {
		t.Error("no document shows logs")
	}
}
