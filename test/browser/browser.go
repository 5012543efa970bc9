// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser opens pages in a real browser without a screen, and looks at them as a reader would: by what is laid out where, in
// which colours, what is printed, and what the browser asked for or complained about meanwhile.
package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/freehold-dev/freehold/test/harness"
)

// Programs are browsers that work without a screen.
var Programs = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// Required reports whether a missing program fails a test; otherwise it is skipped.
func Required() bool { return os.Getenv("FREEHOLD_BROWSER") == "required" }

// Need returns the path of the first program that is there. Without any, the test is skipped, or fails where they are required.
func Need(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if Required() {
		t.Fatalf("none of %v is on PATH; hack/install-browser-packages.sh installs them", names)
	}
	t.Skipf("none of %v is on PATH; hack/install-browser-packages.sh installs them", names)
	return ""
}

// Tab is a page in a browser.
type Tab struct {
	// ctx is that of chromedp, which has the browser in it.
	ctx context.Context //nolint:containedctx // this is how chromedp hands a browser on
	// Address of the page.
	Address string

	mu sync.Mutex
	// requests are the addresses that were asked for, complaints what was thrown or written to the console.
	requests, complaints []string
}

// Open shows a page, which is a file, until the test ends.
func Open(t *testing.T, page string) *Tab {
	t.Helper()
	program := Need(t, Programs...)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := harness.WithinPace(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	// As root there is no sandbox, and the page is ours.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	tab := &Tab{ctx: ctx, Address: "file://" + file}
	if err := chromedp.Listen(ctx, tab.heard); err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	call(t, tab, network.Enable, network.EnableParams{})
	call(t, tab, log.Enable, cdp.Empty{})
	tab.do(t, chromedp.Navigate(tab.Address))
	return tab
}

// heard takes down what the browser tells.
func (tab *Tab) heard(event any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		tab.requests = append(tab.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		tab.complaints = append(tab.complaints, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		tab.complaints = append(tab.complaints, "console."+string(e.Type))
	case *log.EventEntryAdded:
		tab.complaints = append(tab.complaints, e.Entry.Text)
	}
}

// Requests are the addresses that were asked for so far, that of the page included.
func (tab *Tab) Requests() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return append([]string(nil), tab.requests...)
}

// Complaints are what was thrown, refused or written to the console so far.
func (tab *Tab) Complaints() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return append([]string(nil), tab.complaints...)
}

// View is how a page is looked at.
type View struct {
	// Width and Height of the window, in CSS pixels.
	Width, Height int64
	// Media is screen or print, Scheme light or dark.
	Media, Scheme string
}

// Look lays the page out for a view.
func (tab *Tab) Look(t *testing.T, at View) {
	t.Helper()
	tab.do(t, chromedp.EmulateViewport(at.Width, at.Height))
	call(t, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: at.Media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: at.Scheme}},
	})
}

// Print returns the page as a PDF on A4 paper, as a browser prints it unless it is told otherwise: without backgrounds. It is of the
// colour scheme that a reader prefers.
func (tab *Tab) Print(t *testing.T, scheme string) []byte {
	t.Helper()
	// A view for a screen would be printed as such.
	tab.Look(t, View{1280, 800, "", scheme})
	pdf, err := chromedp.Run(tab.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	if err != nil {
		t.Fatal(err)
	}
	return pdf
}

// Eval evaluates a script in the page, and decodes what comes of it, once promises are kept. The page's policy does not bind it.
func Eval[T any](t *testing.T, tab *Tab, script string) T {
	t.Helper()
	result, err := chromedp.Run(tab.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	return result
}

func (tab *Tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// call sends a command of the protocol.
func call[P, R any](t *testing.T, tab *Tab, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(tab.ctx, command, params); err != nil {
		t.Fatal(err)
	}
}
