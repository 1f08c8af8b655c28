//go:build slow

package console

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

const awayRules = `{"permissions":{"defaultMode":"default","ask":["Bash(git push:*)","Bash(bash:*)","Bash(sed:*)"]}}`

// looks checks a page in the windows of a desk, in light, and of a phone, in dark: nothing is wider, and axe finds nothing.
func (b browser) looks(name string) {
	b.Helper()
	for _, w := range []struct {
		name, scheme  string
		width, height int64
	}{{"desk", "light", 1280, 900}, {"phone", "dark", 390, 844}} {
		b.size(w.width, w.height)
		if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > w.width {
			b.Errorf("%s is %d pixels wide at %d", name, wide, w.width)
		}
		b.accessibleIfAsked(name+" on a "+w.name, w.scheme)
		for _, scheme := range []string{"light", "dark"} {
			b.keep(name+"-"+w.name+"-"+scheme, w.width, w.height, scheme)
		}
	}
	b.size(1280, 900)
}

// TestAwayInBrowser answers a question by its link in another browser, and looks at the pages on the way.
func TestAwayInBrowser(t *testing.T) {
	links := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		links <- regexp.MustCompile(`https://asks\.example\.com(/q/[\w-]+)`).FindStringSubmatch(string(raw))[1]
	}))
	t.Cleanup(hook.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	address := l.Addr().String()
	host.Must(t, l.Close())
	file := filepath.Join(host.TempDir(t), "settings.json")
	text, err := json.Marshal(map[string]any{"approvals": map[string]string{"notify": hook.URL,
		"origin": "https://asks.example.com", "listen": address}})
	host.Must(t, err)
	host.MustWrite(t, file, string(text))

	c := startConsole(t, host.HTTPModern, awayRules, "--settings", file, "--console-waits")
	host.MustWrite(t, filepath.Join(c.Dir, "deploy.sh"),
		"#!/bin/bash\nset -eu\nnpm run build\nrsync -a --delete dist/ web@example.com:/srv/www\nrm -rf dist\n")
	desk, phone := newChromium(t), newChromium(t)
	desk.size(1280, 900)
	result := c.begin(t, "Bash", `{"command":"bash deploy.sh production","description":"Deploy the site"}`)
	link := "http://" + address + <-links
	desk.open(c.Link)
	desk.shows(".question .parts", "rsync -a --delete")
	desk.looks("script")
	call := eval[string](desk, `document.querySelector(".call .more a").getAttribute("href")`)
	desk.open(c.At(call))
	desk.shows(".question button", "Allow once")
	desk.looks("call")
	desk.open(c.At("/settings"))
	code := eval[string](desk, `document.querySelector(".shell").textContent`)
	desk.looks("settings")
	desk.open(c.At("/agents"))
	desk.looks("agents")

	phone.open(link)
	phone.shows("button", "Show the question")
	phone.looks("link")
	phone.press("button.main")
	phone.shows("p", "This browser is new")
	phone.looks("code")
	phone.enter("#code", code)
	phone.press("button.main")
	phone.shows(".question .parts", "rsync -a --delete")
	phone.looks("away")
	phone.press(`button[value="allow once"]`)
	phone.shows(".say", "was allowed once")
	phone.looks("answered")
	if r := result(); !strings.Contains(r.Text(), "npm") {
		t.Errorf("the command did not run: %s", r.Text())
	}

	host.MustWrite(t, filepath.Join(c.Dir, "a.txt"), "old\n")
	result = c.begin(t, "Bash", `{"command":"sed -i s/old/new/ a.txt"}`)
	phone.open("http://" + address + <-links)
	phone.press("button.main")
	phone.shows(".question", "sed -i")
	phone.press(`button[value="allow once"]`)
	phone.shows(".say", "was allowed once")
	result()
	desk.open(c.At("/"))
	desk.until(`((a) => a && (a.click(), true))([...document.querySelectorAll(".call.done")].filter((c) => c.textContent.includes("sed")).map((c) => c.querySelector(".more a"))[0])`)
	desk.shows("button", "Undo this change")
	desk.looks("done")
	desk.press("form.undo button")
	desk.shows("#say", "Undone")
}
