package settle

import (
	"bytes"
	"os"
	"strings"
	"unicode/utf8"
)

// maxShown bounds the files whose content is shown to a person, in bytes.
const maxShown = 256 << 10

// Differing returns the lines of the former file and of the held one, without the lines that both begin and end with.
// For a link it returns where the link leads. It returns "" for a file that is absent, is not text, or is larger than
// 256 KiB. Call it while no command runs: then the former file stands at the path.
func (f File) Differing() (former, now string) {
	if f.State != "new" {
		former = shown(f.Path)
	}
	if f.State != "removed" {
		now = shown(f.Aside)
	}
	x, y := strings.SplitAfter(former, "\n"), strings.SplitAfter(now, "\n")
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return strings.Join(x, ""), strings.Join(y, "")
}

// shown returns the content of a text, or where a link leads.
func shown(path string) string {
	if to, err := os.Readlink(path); err == nil {
		return "a link to " + to
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxShown {
		return ""
	}
	content, err := os.ReadFile(path)
	if err != nil || bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) {
		return ""
	}
	return string(content)
}
