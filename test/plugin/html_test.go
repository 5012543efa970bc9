// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
)

// browsers are programs that show a page without a screen.
var browsers = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// looking looks at the page from within a browser, presses the button of a manager twice, and leaves what it has seen
// in the page.
const looking = `<script>{
const seen = {errors: [], fetched: performance.getEntriesByType("resource").map((r) => r.name)};
addEventListener("error", (e) => seen.errors.push(e.message));
const shown = () => [...document.querySelectorAll("tr[data-managers]")].filter((r) => !r.classList.contains("aside")).length;
const buttons = [...document.querySelectorAll("button")];
const button = buttons.find((b) => b.textContent.startsWith("kubectl-set "));
seen.managers = buttons.length;
seen.children = document.querySelectorAll(".picture a").length;
seen.links = [...document.querySelectorAll(".picture a")].every((a) => document.querySelector(a.getAttribute("href")) !== null);
seen.lines = shown();
button.click();
seen.chosen = shown();
seen.pressed = button.getAttribute("aria-pressed");
seen.coloured = getComputedStyle(document.querySelector("tr.owned td")).backgroundColor !== getComputedStyle(document.querySelector("tr.container td")).backgroundColor;
seen.evil = typeof window.evil !== "undefined";
button.click();
seen.again = shown();
const result = document.createElement("pre");
result.id = "seen";
result.textContent = JSON.stringify(seen);
document.body.append(result);
}</script>`

// TestPageInBrowser opens the page in a real browser. It is skipped where there is none, unless FREEHOLD_BROWSER is
// "required".
func TestPageInBrowser(t *testing.T) {
	browser := findBrowser(t)
	s := newScene(t, harness.Replicas(1, 1))
	s.others(t)
	s.kubectl.Run(t, "annotate", "deployment/"+web, "example.com/evil=</td><script>window.evil = 1</script>")
	page := must(t, s.Namespace, cmd.ExitDone, "owners", "mcpserver/web", "-o", "html").out
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(strings.Replace(page, "</body>", looking+"</body>", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+file)
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	found := regexp.MustCompile(`<pre id="seen">(.*?)</pre>`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("the browser has not come to the end of the page:\n%.3000s", out)
	}
	var seen struct {
		Errors, Fetched                          []string
		Managers, Children, Lines, Chosen, Again int
		Links, Coloured, Evil                    bool
		Pressed                                  string
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Errors) > 0 || len(seen.Fetched) > 0 || seen.Evil {
		t.Errorf("errors %v, fetched %v, foreign script ran: %t", seen.Errors, seen.Fetched, seen.Evil)
	}
	if seen.Children != 11 || !seen.Links || !seen.Coloured || seen.Managers < 10 {
		t.Errorf("%d objects, links %t, coloured %t, %d managers", seen.Children, seen.Links, seen.Coloured, seen.Managers)
	}
	// kubectl set env owns the name and the value of one variable.
	if seen.Chosen != 2 || seen.Pressed != "true" || seen.Lines < 300 || seen.Again != seen.Lines {
		t.Errorf("%d lines, %d of the chosen manager, %d after it, pressed: %s", seen.Lines, seen.Chosen, seen.Again, seen.Pressed)
	}
}

func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("FREEHOLD_BROWSER") == "required" {
		t.Fatalf("there is no browser; looked for %v", browsers)
	}
	t.Skipf("there is no browser to open the page in; looked for %v", browsers)
	return ""
}
