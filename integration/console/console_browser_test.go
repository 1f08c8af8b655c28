//go:build slow

package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/toolhost/toolhost/integration/host"
)

// hostile is what a command prints to take over the page, and to look like something else.
const hostile = `<script>document.title='owned'</script><img src=x onerror=document.title='owned'></pre></li><h1>Approved</h1>`

const browserRules = `{"permissions":{"defaultMode":"default","deny":["Read(.env)","Bash(curl:*)"],"ask":["Bash(git push:*)"],"allow":["Bash(printf:*)","Bash(sleep:*)"]}}`

// TestConsoleInBrowser does in a browser what a person does: sees calls, allows, denies, always allows, undoes,
// stops.
func TestConsoleInBrowser(t *testing.T) {
	b := newChromium(t)
	servers := filepath.Join(host.TempDir(t), "servers.json")
	host.MustWrite(t, servers, `{"mcpServers":{"gone":{"url":"http://127.0.0.1:1"},"old":{"type":"sse","url":"http://127.0.0.1:1"}}}`)
	c := startConsole(t, host.HTTPModern, browserRules, "--mcp-config", servers)
	c.Meta = map[string]any{"threadId": "one"}
	host.MustWrite(t, filepath.Join(c.Dir, ".env"), "SECRET=1\n")
	host.MustWrite(t, filepath.Join(c.Dir, "app.toml"), "port = 8080\nhost = \"localhost\"\n")
	b.size(1000, 900)
	b.open(c.Link)
	b.shows("#link-text", "live")
	b.shows(".empty", "Nothing waits")
	if where := eval[string](b, "location.href"); where != c.At("/") {
		t.Errorf("the code was exchanged, and the address is %s", where)
	}
	b.keep("empty-light", 1000, 900, "light")
	c.Link = c.OpenLink(t)
	b.open(c.Link)
	b.shows("#link-text", "live")
	if where := eval[string](b, "location.href"); where != c.At("/") {
		t.Errorf("a second link was opened by who has entered, and the address is %s", where)
	}
	for _, step := range []struct {
		name string
		do   func(browser, *consoleHost)
	}{
		{"calls appear", seesCalls}, {"hostile output is text", seesHostile}, {"allow", allows}, {"deny", denies}, {"always", allowsAlways},
		{"answering moves nothing", movesNothing}, {"task", stopsTask}, {"undo", undoes}, {"rewind", rewinds}, {"rules", explains}, {"audit", searches}, {"keyboard", usesKeyboard},
		{"the pages are accessible", isAccessible}, {"nothing is wider than a phone", fitsPhone}, {"another browser gets nothing", staysOut},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(b.in(t), c) })
	}
}

func seesCalls(b browser, c *consoleHost) {
	c.begin(b.T, "Read", `{"file_path":".env"}`)()
	c.begin(b.T, "Read", `{"file_path":"app.toml"}`)()
	b.shows(".call.refused summary", ".env")
	b.shows(".call.done summary", "app.toml")
}

func seesHostile(b browser, c *consoleHost) {
	host.MustWrite(b.T, filepath.Join(c.Dir, "hostile.txt"), hostile+"\x1b[2J\x1b]0;x\a\u202egnp.exe\n")
	if r := c.begin(b.T, "Read", `{"file_path":"hostile.txt"}`)(); r.IsError {
		b.Fatal(r.Text())
	}
	b.shows(".call .result", "onerror=document.title")
	b.shows(".call .result", "⟨U+202E⟩gnp.exe")
	b.shows(".call .result", "␛[2J␛]0;x␇")
	if eval[bool](b, `!!document.querySelector("main img, main script, main h1:not(.unseen)") || document.title.includes("owned")`) {
		b.Error("the output became part of the page")
	}
	// Should a text get past all that after all, the browser does not run it.
	for what, try := range map[string]string{
		"text becomes HTML": `document.body.insertAdjacentHTML("beforeend", "<b>x</b>")`,
		"text becomes code": `setTimeout("document.title = 'owned'", 0)`,
	} {
		if eval[bool](b, `(() => { try { `+try+`; return true } catch { return false } })()`) {
			b.Errorf("in a script of the page %s", what)
		}
	}
	for _, load := range []string{
		`Object.assign(document.createElement("style"), {textContent: "h1 { color: red }"})`,
		`Object.assign(new Image(), {src: "http://127.0.0.1:9/x"})`,
	} {
		b.until(`new Promise((refused) => {
			document.addEventListener("securitypolicyviolation", () => refused(true), { once: true });
			document.head.append(` + load + `);
		})`)
	}
}

func allows(b browser, c *consoleHost) {
	result := c.begin(b.T, "Edit", `{"file_path":"app.toml","old_string":"8080","new_string":"9090"}`)
	b.shows(".question .row.del", "8080")
	b.shows("title", "(1)")
	b.shows("#call", "waits for you")
	b.keep("question-light", 1000, 900, "light")
	b.keep("question-dark", 1000, 900, "dark")
	b.keep("question-phone-light", 360, 740, "light")
	b.keep("question-phone-dark", 360, 740, "dark")
	b.size(360, 740)
	if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
		b.Errorf("the question is %d pixels wide on a phone", wide)
	}
	b.size(1000, 900)
	b.answer(`button[value="allow once"]`)
	b.shows("#say", "allowed once")
	if r := result(); r.IsError {
		b.Fatal(r.Text())
	}
	b.shows(".call.done .plus", "+1")
}

func denies(b browser, c *consoleHost) {
	result := c.begin(b.T, "Bash", `{"command":"git push origin main"}`)
	b.shows(".question", "git push")
	// What has no effect leaves the question as it was.
	const decide = `document.querySelector('.question .deny input[name="decision"]').value = %s`
	eval[string](b, decide, "nonsense")
	b.until(`(document.querySelector(".question .deny button").click(), document.querySelector("#say").textContent.includes("No decision was given"))`)
	b.until(`[...document.querySelectorAll(".question button")].every((button) => !button.disabled)`)
	eval[string](b, decide, "deny")
	b.enter(`.question input[name="reason"]`, "open a pull request")
	b.answer(".deny button")
	b.shows(".settled", "was denied")
	if r := result(); !r.IsError || !strings.Contains(r.Text(), "open a pull request") {
		b.Error(r.Text())
	}
}

func allowsAlways(b browser, c *consoleHost) {
	const write = `{"file_path":"notes.md","content":"# Notes\n"}`
	result := c.begin(b.T, "Write", write)
	b.shows(".question", "notes.md")
	b.answer(`button[value="always allow"]`)
	if r := result(); r.IsError {
		b.Fatal(r.Text())
	}
	if r := c.begin(b.T, "Write", write)(); r.IsError {
		b.Errorf("the rule was not remembered: %s", r.Text())
	}
}

// movesNothing answers one of two questions: the other must not come under the pointer.
func movesNothing(b browser, c *consoleHost) {
	first, second := c.begin(b.T, "Bash", `{"command":"git push origin one"}`), c.begin(b.T, "Bash",
		`{"command":"git push origin two"}`)
	b.shows(".question + .question", "git push origin")
	// From the one that is answered: what was settled before leaves the page in its time, also meanwhile.
	const below = `((all) => all.at(-1).getBoundingClientRect().top - all.at(-2).getBoundingClientRect().top)([...document.querySelector(".questions").children])`
	before := eval[float64](b, below)
	b.until(`((button) => { if (button && !button.disabled) button.click(); return !document.querySelector(".question + .question"); })(document.querySelector(".question .deny button"))`)
	b.shows(".settled", "was denied")
	if after := eval[float64](b, below); after != before {
		b.Errorf("the second question moved from %v to %v below the first", before, after)
	}
	b.answer(".deny button")
	first()
	second()
}

func stopsTask(b browser, c *consoleHost) {
	const command = `echo 'line 1 <b>'; until [ -e go ]; do sleep 0.1; done; echo 'line 2 <b>'; sleep 600`
	if r := c.begin(b.T, "Bash", `{"command":"`+command+`","run_in_background":true}`)(); r.IsError {
		b.Fatal(r.Text())
	}
	b.shows(".task .state", "running")
	b.keep("live-light", 1000, 900, "light")
	b.keep("live-dark", 1000, 900, "dark")
	b.keep("live-phone-light", 360, 740, "light")
	b.size(1000, 900)
	b.press(".task a")
	b.shows("#output", "line 1 <b>")
	host.MustWrite(b.T, filepath.Join(c.Dir, "go"), "")
	b.shows("#output", "line 2 <b>")
	b.keep("task-light", 1000, 900, "light")
	b.press("#task-stop button")
	b.shows("#task-state", "ended")
	b.open(c.At("/"))
	b.shows(".task .state", "ended")
}

func undoes(b browser, c *consoleHost) {
	b.open(c.At("/history"))
	b.keep("history-light", 1000, 900, "light")
	b.keep("history-phone-dark", 360, 740, "dark")
	b.size(1000, 900)
	// The newest change is that of the task, while which the test made a file.
	b.until(`((row) => row && (row.querySelector("input").click(), true))([...document.querySelectorAll(".change")].find((row) => row.textContent.includes("notes.md")))`)
	b.press("form > p > button.danger")
	b.shows("#say", "Undone")
	if _, err := os.Stat(filepath.Join(c.Dir, "notes.md")); !os.IsNotExist(err) {
		b.Errorf("the file that was created is still there: %v", err)
	}
	b.open(c.At("/history"))
	b.until(`((a) => a && (a.click(), true))([...document.querySelectorAll("a.what")].find((a) => a.textContent.includes("app.toml")))`)
	b.shows(".row.add", "9090")
	b.keep("change-light", 1000, 900, "light")
	b.press(".undo button.main")
	b.shows("#say", "Undone")
	if got, err := os.ReadFile(filepath.Join(c.Dir, "app.toml")); err != nil || !strings.Contains(string(got), "8080") {
		b.Errorf("the file holds %q, %v", got, err)
	}
}

// rewinds goes back to before a command, and takes that back: from the timeline over the preview to the result.
func rewinds(b browser, c *consoleHost) {
	for _, command := range []string{`printf 'first\\n' > rewound.txt`, `printf 'second\\n' > rewound.txt`} {
		result := c.begin(b.T, "Bash", `{"command":"`+command+`"}`)
		if r := result(); r.IsError {
			b.Fatal(r.Text())
		}
	}
	b.open(c.At("/history"))
	b.shows(".change .meta", "created rewound.txt")
	b.shows(".change .plus", "+1")
	b.until(`((row) => row && (row.querySelector("a.rewind").click(), true))([...document.querySelectorAll(".change")].find((row) => row.textContent.includes("created rewound.txt")))`)
	b.shows("h1", "Rewind to before")
	b.shows(".row.del", "second")
	b.keep("rewind-light", 1000, 900, "light")
	b.keep("rewind-phone-dark", 360, 740, "dark")
	b.size(360, 740)
	if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
		b.Errorf("the preview is %d pixels wide on a phone", wide)
	}
	b.size(1000, 900)
	b.accessibleIfAsked("the preview of a rewind", "light", "dark")
	b.press("form.undo button.main")
	b.shows("#say", "Rewound: 1 file restored")
	b.accessibleIfAsked("a rewind", "light", "dark")
	path := filepath.Join(c.Dir, "rewound.txt")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		b.Errorf("the file that a command made is still there: %v", err)
	}
	b.press("form.undo button.main")
	b.shows("#say", "Undone")
	if got, err := os.ReadFile(path); string(got) != "second\n" {
		b.Errorf("after undoing the rewind the file holds %q, %v", got, err)
	}
}

func explains(b browser, c *consoleHost) {
	b.open(c.At("/rules"))
	b.enter("#input", "git push --force && curl -s example.com")
	b.press(".panel button.main")
	b.shows(".explained .verdict", "deny")
	b.shows(".explained code", "Bash(curl:*)")
	b.keep("rules-light", 1000, 900, "light")
	b.keep("rules-phone-dark", 360, 740, "dark")
	b.size(1000, 900)
}

func searches(b browser, c *consoleHost) {
	b.open(c.At("/audit"))
	b.shows(".record .tool", "Edit")
	b.enter("#text", ".env")
	b.press(".search button")
	b.shows("#text", "")
	b.lacks(".record .verdict.allow")
	b.shows(".record code", ".env")
	b.keep("audit-light", 1000, 900, "light")
	b.keep("audit-phone-light", 360, 740, "light")
	b.size(1000, 900)
}

// usesKeyboard answers without a pointer: Tab leads to the answers in their order, and Enter in the reason denies.
func usesKeyboard(b browser, c *consoleHost) {
	b.open(c.At("/"))
	b.shows("#link-text", "live")
	result := c.begin(b.T, "Bash", `{"command":"git push origin dev"}`)
	b.shows(".question", "git push origin dev")
	b.do(chromedp.Focus(chromedp.CSS(".question .input")))
	var seen []string
	for range 8 {
		b.do(chromedp.KeyEvent(kb.Tab))
		seen = append(seen, eval[string](b, `document.activeElement.name || document.activeElement.tagName`))
		if !eval[bool](b, `document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
			b.Errorf("the focus on %s cannot be seen", seen[len(seen)-1])
		}
		if seen[len(seen)-1] == "reason" {
			break
		}
	}
	if got, want := strings.Join(seen, " "), "SUMMARY decision reason"; got != want {
		b.Fatalf("Tab leads to %q, want %q", got, want)
	}
	host.Eventually(b.T, func() (missing string) { // one that has just appeared takes no answer
		b.do(chromedp.KeyEvent(kb.Enter))
		if eval[bool](b, `!!document.querySelector(".question")`) {
			return "the question stands still"
		}
		return ""
	})
	if r := result(); !r.IsError || !strings.Contains(r.Text(), "the person refused") {
		b.Error(r.Text())
	}
}

// isAccessible asks axe-core about every page, with a question waiting and a call open.
func isAccessible(b browser, c *consoleHost) {
	if os.Getenv(axeScript) == "" {
		b.Skipf("$%s does not name the axe.min.js of the npm package axe-core", axeScript)
	}
	b.open(c.At("/"))
	b.shows("#link-text", "live")
	result := c.begin(b.T, "Bash", `{"command":"git push origin a11y"}`)
	b.shows(".question", "a11y")
	b.press(".call summary")
	b.accessible("/", "light", "dark")
	for _, link := range []string{".session a", ".call .more a", ".task a"} {
		path := eval[string](b, `document.querySelector(%s).getAttribute("href")`, link)
		b.open(c.At(path))
		b.accessible(path, "light", "dark")
		b.open(c.At("/"))
	}
	b.answer(".deny button")
	result()
	b.open(c.At("/history"))
	change := eval[string](b, `document.querySelector(".change a").getAttribute("href")`)
	for _, path := range []string{"/history", change, change + "/file", "/servers", "/rules", "/audit", "/nothing"} {
		b.open(c.At(path))
		b.accessible(path, "light", "dark")
	}
}

func fitsPhone(b browser, c *consoleHost) {
	b.size(360, 740)
	for _, path := range []string{"/", "/history", "/servers", "/rules", "/audit", "/calls/1", "/nothing"} {
		b.open(c.At(path))
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
			b.Errorf("%s is %d pixels wide", path, wide)
		}
	}
}

func staysOut(b browser, c *consoleHost) {
	other := newChromium(b.T)
	other.open(c.At("/"))
	other.shows("h1", "Console")
	other.shows("p", "opened by a link that works once")
	other.keep("enter-light", 1000, 600, "light")
	if text := eval[string](other, "document.documentElement.outerHTML"); strings.Contains(text, c.Dir) {
		other.Errorf("the page tells what it should not:\n%s", text)
	}
}

// TestConsolesAgree shows the same on two pages, and lets one see what the other has answered.
func TestConsolesAgree(t *testing.T) {
	one, two := newChromium(t), newChromium(t)
	c := startConsole(t, host.StdioLegacy, askPush)
	one.open(c.Link)
	one.shows("#link-text", "live")
	c.Link = c.OpenLink(t)
	two.open(c.Link)
	two.shows("#link-text", "live")
	result := c.begin(t, "Bash", `{"command":"echo push 1"}`)
	one.shows(".question", "echo push 1")
	two.shows(".question", "echo push 1")
	two.answer(`button[value="allow once"]`)
	one.lacks(".question")
	one.shows(".settled", "allowed once")
	if r := result(); r.IsError {
		t.Error(r.Text())
	}
}

// TestConsoleTabs: one tab follows the host for all. A tab that was signed out says so, and keeps none that is opened
// later from following.
func TestConsoleTabs(t *testing.T) {
	first := newChromium(t)
	c := startConsole(t, host.HTTPModern, askPush)
	first.open(c.Link)
	first.shows("#link-text", "live")
	ctx, cancel := chromedp.NewContext(first.ctx)
	t.Cleanup(cancel)
	second := browser{t, ctx, first.end}
	second.open(c.At("/"))
	second.shows("#link-text", "live")
	result := c.begin(t, "Bash", `{"command":"echo push 1"}`)
	first.shows(".question", "echo push 1")
	second.shows(".question", "echo push 1")
	second.answer(`button[value="allow once"]`)
	if r := result(); r.IsError {
		t.Error(r.Text())
	}
	second.press(".where button")
	second.shows("p", "You have left the console")
	first.shows("#link-text", "stopped")
	c.Link = c.OpenLink(t)
	second.open(c.Link)
	second.shows("#link-text", "live")
}
