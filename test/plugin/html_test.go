// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/browser"
	"github.com/freehold-dev/freehold/test/harness"
)

// using presses the button of a manager twice, and returns what is seen before, meanwhile and afterwards.
const using = `(() => {
const seen = {};
const shown = () => [...document.querySelectorAll("tr[data-managers]")].filter((r) => !r.classList.contains("aside")).length;
const buttons = [...document.querySelectorAll("button")];
const button = buttons.find((b) => b.textContent.startsWith("kubectl-set "));
seen.Managers = buttons.length;
seen.Children = document.querySelectorAll(".picture a").length;
seen.Links = [...document.querySelectorAll(".picture a")].every((a) => document.querySelector(a.getAttribute("href")) !== null);
seen.Lines = shown();
button.click();
seen.Chosen = shown();
seen.Pressed = button.getAttribute("aria-pressed");
const ground = (selector) => getComputedStyle(document.querySelector(selector)).backgroundColor;
seen.Coloured = ground("tr.owned td") !== ground("tr.container td");
button.click();
seen.Again = shown();
seen.Evil = typeof window.evil !== "undefined";
return seen;
})()`

// TestPageInBrowser opens the page of an MCPServer and its children in a real browser, and uses it. How it looks is for the suite
// browser to say. It is skipped where there is no browser, unless FREEHOLD_BROWSER is "required".
func TestPageInBrowser(t *testing.T) {
	browser.Need(t, browser.Programs...)
	s := newScene(t, harness.Replicas(1, 1))
	s.others(t)
	s.kubectl.Run(t, "annotate", "deployment/"+web, "example.com/evil=</td><script>window.evil = 1</script>")
	tab := browser.Open(t, must(t, s.Namespace, cmd.ExitDone, "owners", "mcpserver/web", "-o", "html").out)
	seen := browser.Eval[struct {
		Managers, Children, Lines, Chosen, Again int
		Links, Coloured, Evil                    bool
		Pressed                                  string
	}](t, tab, using)
	if got := tab.Requests(); len(got) != 1 || got[0] != tab.Address {
		t.Errorf("asked for %v, want the page alone", got)
	}
	if got := tab.Complaints(); len(got) > 0 || seen.Evil {
		t.Errorf("the browser complains: %v; a foreign script ran: %t", got, seen.Evil)
	}
	if seen.Children != 11 || !seen.Links || !seen.Coloured || seen.Managers < 10 {
		t.Errorf("%d objects, links %t, coloured %t, %d managers", seen.Children, seen.Links, seen.Coloured, seen.Managers)
	}
	// kubectl set env owns the name and the value of one variable.
	if seen.Chosen != 2 || seen.Pressed != "true" || seen.Lines < 300 || seen.Again != seen.Lines {
		t.Errorf("%d lines, %d of the chosen manager, %d after it, pressed: %s", seen.Lines, seen.Chosen, seen.Again, seen.Pressed)
	}
}
