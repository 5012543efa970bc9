// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/pkg/fieldowners"
	"github.com/freehold-dev/freehold/pkg/printable"
)

// layout is what looking has seen.
type layout struct {
	// Wider is by how many pixels the page is wider than its window. Cut are texts of which a part cannot be seen, not even by
	// scrolling.
	Wider float64
	Cut   []string
	// Askew are lines beside which the margin is not at their height.
	Askew []string
	// Rows and Managers are how many lines and managers there are, and Unselectable how many texts cannot be selected.
	Rows, Managers, Unselectable int
	// Faint are texts with a contrast below 4.5, and Contrast the least.
	Faint    []string
	Contrast float64
	// Selected is what is copied when all is selected.
	Selected string
}

// looking measures the page as it is laid out.
const looking = `(() => {
const seen = {Cut: [], Askew: [], Faint: [], Contrast: 21, Unselectable: 0};
const paper = matchMedia("print").matches;
const root = document.documentElement;
seen.Wider = root.scrollWidth - root.clientWidth;
const rows = [...document.querySelectorAll("tbody tr")];
seen.Rows = rows.length;
seen.Managers = document.querySelectorAll("button[data-manager]").length;

// Where the first line of an element's text is.
const textBox = (element) => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return range.getClientRects()[0];
};
for (const row of rows) {
  const [owners, line] = row.cells;
  const [a, b] = [owners.getBoundingClientRect(), line.getBoundingClientRect()];
  const [ownersText, lineText] = [textBox(owners), textBox(line)];
  const level = !ownersText || !lineText || Math.abs(ownersText.bottom - lineText.bottom) < 4;
  if (Math.abs(a.top - b.top) > 0.5 || Math.abs(a.bottom - b.bottom) > 0.5 || a.right > b.left + 0.5 || !level) {
    seen.Askew.push(row.textContent.slice(0, 80));
  }
}

// A text is cut where it reaches beyond something that clips it, or beyond paper. What scrolls does not clip on a screen.
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)); };
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
// Paper is white, and has no backgrounds.
const measure = (element, what) => {
  let ground = [255, 255, 255];
  const layers = [];
  for (let up = element; up && !paper; up = up.parentElement) layers.unshift(parse(getComputedStyle(up).backgroundColor));
  for (const layer of layers) ground = over(layer, ground);
  const colour = getComputedStyle(element).color;
  const [light, dark] = [luminance(over(parse(colour), ground)), luminance(ground)].sort((a, b) => b - a);
  const contrast = (light + 0.05) / (dark + 0.05);
  seen.Contrast = Math.min(seen.Contrast, contrast);
  if (contrast < 4.5) seen.Faint.push(contrast.toFixed(2) + " " + colour + " on " + ground.map(Math.round) + ": " + what);
};
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  if (!node.textContent.trim() || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) {
    if (paper && (box.right > root.clientWidth + 0.5 || box.left < -0.5)) { seen.Cut.push(node.textContent.slice(0, 60)); break; }
  }
  const text = range.getBoundingClientRect();
  for (let up = element; up; up = up.parentElement) {
    const style = getComputedStyle(up), box = up.getBoundingClientRect();
    const clips = [style.overflowX, style.overflowY].some((v) => v === "hidden" || v === "clip" || paper && v !== "visible");
    if (clips && (text.right > box.right + 0.5 || text.bottom > box.bottom + 0.5)) seen.Cut.push(node.textContent.slice(0, 60));
  }
  if (getComputedStyle(element).userSelect === "none") seen.Unselectable++;
  measure(element, node.textContent.trim().slice(0, 40));
}
// Managers have other colours on other pages.
for (const coloured of [document.querySelector("tr.owned:has(small)"), document.querySelector("button")]) {
  const hue = coloured.style.getPropertyValue("--hue");
  for (let angle = 0; angle < 360; angle += 4) {
    coloured.style.setProperty("--hue", angle);
    measure(coloured.querySelector("small"), "hue " + angle);
    measure(coloured.cells?.[0] ?? coloured, "hue " + angle);
  }
  coloured.style.setProperty("--hue", hue);
}
for (const of of ["Cut", "Askew", "Faint"]) seen[of] = [...new Set(seen[of])].slice(0, 8);
getSelection().selectAllChildren(document.body);
seen.Selected = getSelection().toString();
getSelection().removeAllRanges();
return seen;
})()`

// breaking tries what a script could that got into the page, with another server's address.
const breaking = `(async () => {
const elsewhere = %q, tried = {};
const came = (what) => new Promise((resolve) => {
  what.onload = () => resolve("it was loaded");
  what.onerror = () => resolve("refused");
});
try { await fetch(elsewhere); tried.fetch = "it was answered"; } catch (e) { tried.fetch = "refused: " + e; }
const image = new Image(), loaded = came(image);
image.src = elsewhere + "/image";
tried.image = await loaded;
const frame = document.createElement("script"), run = came(frame);
frame.src = elsewhere + "/script";
document.body.append(frame);
tried.script = await run;
const inline = document.createElement("script");
inline.textContent = "window.inline = 'it ran'";
document.body.append(inline);
tried.inline = window.inline ?? "refused";
return tried;
})()`

// check compares what is seen with what there is to see.
func (seen layout) check(t *testing.T, at View, all []*fieldowners.Report) {
	t.Helper()
	if seen.Wider > 0 {
		t.Errorf("the page is %v pixels wider than its window of %d", seen.Wider, at.Width)
	}
	for problem, found := range map[string][]string{"is cut": seen.Cut, "is not level with its margin": seen.Askew, "is faint": seen.Faint} {
		for _, text := range found {
			t.Errorf("it %s: %s", problem, text)
		}
	}
	if seen.Unselectable > 0 {
		t.Errorf("%d texts cannot be selected", seen.Unselectable)
	}
	lines := 0
	for _, report := range all {
		for _, line := range report.Lines {
			lines++
			if !strings.Contains(seen.Selected, printable.Text(line.Text)) {
				t.Errorf("not among what is copied: %.80s", line.Text)
			}
		}
	}
	if seen.Rows != lines || lines < 250 || seen.Managers < 6 {
		t.Errorf("%d lines of %d, %d managers", seen.Rows, lines, seen.Managers)
	}
	t.Logf("%d lines, %d managers, least contrast %.1f", seen.Rows, seen.Managers, seen.Contrast)
}

// choose presses the button of a manager with the keyboard, twice.
func choose(t *testing.T, tab *Tab) {
	t.Helper()
	type chosen struct {
		Shown, Of int
		Pressed   string
	}
	const look = `(() => {
const rows = [...document.querySelectorAll("tbody tr")];
const button = [...document.querySelectorAll("button")].find((b) => b.textContent.startsWith("kubectl-edit "));
button.click();
return {Shown: rows.filter((r) => !r.classList.contains("aside")).length, Of: rows.length, Pressed: button.getAttribute("aria-pressed")};
})()`
	if got := Eval[chosen](t, tab, look); got.Shown != 3 || got.Pressed != "true" {
		t.Errorf("one manager chosen: %+v, want the 3 lines that it owns", got)
	}
	if got := Eval[chosen](t, tab, look); got.Shown != got.Of || got.Pressed != "false" {
		t.Errorf("none chosen any more: %+v", got)
	}
}

// checkPaper reads what is printed: each line of each object is there, whole, and where it belongs.
func checkPaper(t *testing.T, pdf []byte, all []*fieldowners.Report) {
	t.Helper()
	program := Need(t, "pdftotext")
	file := filepath.Join(t.TempDir(), "page.pdf")
	if err := os.WriteFile(file, pdf, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), program, "-raw", file, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	pages := bytes.Count(text, []byte("\f"))
	// Blanks are not text in a PDF, and a long line is printed on several.
	squeeze := func(text string) string { return strings.Join(strings.Fields(text), "") }
	printed := squeeze(string(text))
	for _, report := range all {
		for _, line := range report.Lines {
			if !strings.Contains(printed, squeeze(printable.Text(line.Text))) {
				t.Errorf("not on paper: %s", line.Text)
			}
		}
	}
	if pages < 3 {
		t.Errorf("there are %d pages", pages)
	}
}
