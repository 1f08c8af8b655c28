//go:build slow

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/toolhost/toolhost/integration/host"
)

// screenshotDir names the environment variable with the directory that pictures of the console are kept in, to be
// looked at by a person.
const screenshotDir = "TOOLHOST_SCREENSHOTS"

// newChromium starts a browser with nothing in it, or skips the test where there is none.
func newChromium(t *testing.T) browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no chromium is installed: the console is not tried in a browser (apt-get install chromium)")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program), chromedp.UserDataDir(host.BusyDir(t)), chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(host.Patience),
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update",
		"disable-sync", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	t.Cleanup(func() { // waits for the end of its first process
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("the browser ended with %v", err)
		}
	})
	b := browser{t, ctx, end}
	b.do() // starts it
	return b
}

// A browser is one window of chromium.
type browser struct {
	*testing.T
	ctx context.Context
	end context.CancelFunc // of the browser with all its windows
}

// bounded ends the browser, which fails every step, when a step takes longer than any should.
func (b browser) bounded() (stop func() bool) { return time.AfterFunc(host.Patience, b.end).Stop }

func (b browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	defer b.bounded()()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatalf("in the browser: %v", err)
	}
}

// in is the browser for a subtest.
func (b browser) in(t *testing.T) browser { return browser{t, b.ctx, b.end} }

// open goes to a page. A page that is still on its way from before ends that, so it is tried again.
func (b browser) open(url string) {
	b.Helper()
	host.Eventually(b.T, func() (missing string) {
		defer b.bounded()()
		if err := chromedp.Do(b.ctx, chromedp.Navigate(url)); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (b browser) size(width, height int64) { b.Helper(); b.do(chromedp.EmulateViewport(width, height)) }

func (b browser) press(selector string) { b.Helper(); b.do(chromedp.Click(chromedp.CSS(selector))) }

func (b browser) enter(selector, text string) {
	b.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// eval returns the value of an expression. Arguments stand in it as JSON.
func eval[V any](b browser, expression string, args ...any) V {
	b.Helper()
	v, err := tryEval[V](b, expression, args...)
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// tryEval is eval for a page that may be on its way.
func tryEval[V any](b browser, expression string, args ...any) (v V, err error) {
	defer b.bounded()()
	var shown []any
	for _, arg := range args {
		raw, err := json.Marshal(arg)
		if err != nil {
			return v, err
		}
		shown = append(shown, string(raw))
	}
	return chromedp.Run(b.ctx, chromedp.Evaluate[V](expressionOf(expression, shown), chromedp.EvalAwaitPromise))
}

// expressionOf puts arguments into an expression, which may hold percent signs if there are none.
func expressionOf(expression string, args []any) string {
	if len(args) == 0 {
		return expression
	}
	return fmt.Sprintf(expression, args...)
}

// until waits until an expression holds.
func (b browser) until(expression string, args ...any) {
	b.Helper()
	host.Eventually(b.T, func() (missing string) {
		ok, err := tryEval[bool](b, expression, args...)
		if ok {
			return ""
		}
		page, _ := tryEval[string](b, "document.body.innerText")
		return fmt.Sprintf("%s %v: not on the page, %v\n%s", expression, args, err, page)
	})
	if b.Failed() {
		b.FailNow()
	}
}

// shows waits until an element holds a text.
func (b browser) shows(selector, text string) {
	b.Helper()
	b.until(`[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))`, selector, text)
}

// lacks waits until no element is left.
func (b browser) lacks(selector string) { b.Helper(); b.until(`!document.querySelector(%s)`, selector) }

// answer presses a button of the question on the page until the question is gone: one that has just appeared
// takes no answer.
func (b browser) answer(button string) {
	b.Helper()
	b.until(`((button) => {
		if (button && !button.disabled) button.click();
		return !button;
	})(document.querySelector(".question " + %s))`, button)
}

// keep keeps a picture where the environment asks for it.
func (b browser) keep(name string, width, height int64, scheme string) {
	b.Helper()
	dir := os.Getenv(screenshotDir)
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b.picture(width, height, scheme), 0o644); err != nil {
		b.Error(err)
	}
}

// picture returns the page as it is seen in a window of this size, as a PNG.
func (b browser) picture(width, height int64, scheme string) []byte {
	b.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
		Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.Fatal(err)
	}
	b.size(width, height)
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.Fatal(err)
	}
	return png
}

// axeScript names the environment variable with the path of axe.min.js.
const axeScript = "TOOLHOST_AXE"

// accessibleIfAsked is accessible where the environment names axe-core.
func (b browser) accessibleIfAsked(page string, schemes ...string) {
	b.Helper()
	if os.Getenv(axeScript) != "" {
		b.accessible(page, schemes...)
	}
}

// accessible reports what axe-core finds wrong on the page in some schemes.
func (b browser) accessible(page string, schemes ...string) {
	b.Helper()
	source, err := os.ReadFile(os.Getenv(axeScript))
	if err != nil {
		b.Fatal(err)
	}
	for _, scheme := range schemes {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme}}}
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
			b.Fatal(err)
		}
		found := eval[[]string](b, string(source)+
			`; axe.run().then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html + " " + n.failureSummary)))`)
		for _, violation := range found {
			b.Errorf("%s, %s: %s", page, scheme, violation)
		}
	}
}
