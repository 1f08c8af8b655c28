//go:build slow

package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

//go:generate go test -tags slow -run TestPictures$ -pictures ../../cmd/toolhost/docs .

// maxPicture is the largest picture of the documentation, in bytes.
const maxPicture = 150 << 10

const pictureRules = `{"permissions":{"defaultMode":"acceptEdits","deny":["Read(.env)"],"ask":["Bash(git push:*)"],"allow":["Bash(go test:*)","Bash(printf:*)","Bash(sleep:*)","Bash(make:*)"]}}`

// pictures are those of the documentation by their names, each with a scripted session.
var pictures = []struct {
	name          string
	width, height int64
	script        func(b browser, c *consoleHost)
}{
	{"console", 1100, 820, func(b browser, c *consoleHost) {
		c.works(b)
		b.open(c.At("/"))
		c.asks(b)
	}},
	{"approve", 1100, 560, func(b browser, c *consoleHost) {
		c.asks(b)
		b.do()
	}},
	{"undo", 1100, 560, func(b browser, c *consoleHost) {
		c.works(b)
		b.open(c.At("/history"))
		b.press(".change a")
		b.shows(".row.add", "9090")
	}},
	{"session", 1100, 820, func(b browser, c *consoleHost) {
		c.works(b)
		b.open(c.At("/"))
		b.press(".session a")
		b.shows(".stats", "Tools")
	}},
	{"phone", 390, 820, func(b browser, c *consoleHost) {
		c.works(b)
		b.open(c.At("/"))
		c.asks(b)
	}},
}

// showRoot puts a name in the place of the directory of the test.
const showRoot = `((dir, name) => {
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let n = 0;
	for (; texts.nextNode(); n++) texts.currentNode.data = texts.currentNode.data.replaceAll(dir, name);
	return n;
})(%s, %s)`

// works does what an agent does before it asks.
func (c *consoleHost) works(b browser) {
	b.Helper()
	for _, call := range [][2]string{
		{"Grep", `{"pattern":"port","output_mode":"content"}`},
		{"Read", `{"file_path":"app.toml"}`},
		{"Read", `{"file_path":".env"}`},
		{"Edit", `{"file_path":"app.toml","old_string":"8080","new_string":"9090"}`},
		{"Bash", `{"command":"printf 'ok  shop/cart  0.31s\\n'","description":"Run the tests"}`},
		{"Bash", `{"command":"printf 'listening on :9090\\n'; sleep 600","description":"Serve","run_in_background":true}`},
	} {
		c.begin(b.T, call[0], call[1])()
	}
}

// asks lets a call wait for approval on the page.
func (c *consoleHost) asks(b browser) {
	b.Helper()
	b.shows("#link-text", "live")
	c.begin(b.T, "Bash", `{"command":"git push origin main","description":"Publish the change"}`)
	b.shows(".question", "git push origin main")
}

// TestPictures makes the pictures of the documentation from scripted sessions, so that they stay true: go generate ./integration/....
func TestPictures(t *testing.T) {
	for _, p := range pictures {
		t.Run(p.name, func(t *testing.T) {
			b := newChromium(t)
			c := startConsole(t, host.HTTPModern, pictureRules)
			host.MustWrite(t, filepath.Join(c.Dir, ".env"), "TOKEN=1\n")
			host.MustWrite(t, filepath.Join(c.Dir, "app.toml"), "# the shop\nport = 8080\nhost = \"localhost\"\n")
			b.size(p.width, p.height)
			b.open(c.Link)
			b.shows("#link-text", "live")
			p.script(b, c)
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > p.width {
				t.Errorf("the page is %d pixels wide, want at most %d", wide, p.width)
			}
			eval[int](b, showRoot, c.Dir, "/home/you/shop")
			png := b.picture(p.width, p.height, "light")
			if len(png) > maxPicture {
				t.Errorf("the picture has %d bytes, want at most %d", len(png), maxPicture)
			}
			if *host.PicturesDir == "" {
				return
			}
			if err := os.WriteFile(filepath.Join(*host.PicturesDir, p.name+".png"), png, 0o644); err != nil {
				t.Error(err)
			}
		})
	}
}
