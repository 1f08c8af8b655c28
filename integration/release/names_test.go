package release

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

//go:generate go test . -run TestNames -update

// TestNames holds every name under which the project is found against the module line of go.mod, the one place where its owner and
// repository are chosen: after a change of that line and of the imports, go generate ./integration/... writes the others.
func TestNames(t *testing.T) {
	testenv.NotShort(t, "reads the whole project")
	line, _, _ := strings.Cut(string(readRelease(t, "go.mod")), "\n")
	repository := strings.TrimPrefix(line, "module github.com/")
	if host.Module != "github.com/"+repository+"/" {
		t.Fatalf("go.mod begins with %q, the tests expect the module %s", line, host.Module)
	}
	owner := path.Dir(repository)
	names := []struct {
		name *regexp.Regexp
		want string
	}{
		{regexp.MustCompile(`github\.com/[\w.-]+/toolhost\b`), "github.com/" + repository},
		{regexp.MustCompile(`ghcr\.io/[\w.-]+/toolhost\b`), "ghcr.io/" + repository},
		{regexp.MustCompile(`io\.github\.[\w-]+/toolhost\b`), "io.github." + repository},
		{regexp.MustCompile(`@[\w-]+/(darwin|linux|win32)-(arm64|x64)\b`), "@" + owner + "/$1-$2"},
		{regexp.MustCompile(`\bscope=@[\w-]+`), "scope=@" + owner},
		{regexp.MustCompile(`\{ owner: [\w-]+, name: (toolhost|homebrew-tap|scoop-bucket)\b`), "{ owner: " + owner + ", name: $1"},
	}
	out, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("this is no checkout: %v", err)
	}
	found := make([]int, len(names))
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		file = filepath.Join("../..", file)
		text, err := os.ReadFile(file)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			continue // deleted or moved, or not text
		}
		if strings.HasSuffix(file, "names_test.go") {
			continue
		}
		now := text
		for i, n := range names {
			found[i] += len(n.name.FindAll(text, -1))
			now = n.name.ReplaceAll(now, []byte(n.want))
		}
		if !bytes.Equal(now, text) {
			upToDate(t, file, func([]byte) []byte { return now })
		}
	}
	for i, n := range names {
		if found[i] == 0 {
			t.Errorf("no file matches %s: the check of it is void", n.name)
		}
	}
}

// TestPinned: workflows name actions by their commit, and images are named by their digest.
func TestPinned(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	host.Must(t, err)
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: (\S+)(.*)$`)
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		host.Must(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			if local := strings.HasPrefix(m[1], "./"); !local && !pinned.MatchString(m[1]+m[2]) {
				t.Errorf("%s: %s%s is not pinned: OWNER/NAME@COMMIT # VERSION is expected", file, m[1], m[2])
			}
		}
	}
	from := regexp.MustCompile(`(?m)^FROM (?:--\S+ )?(\S+)`)
	for _, m := range from.FindAllStringSubmatch(string(readRelease(t, ".release/Dockerfile")), -1) {
		if !regexp.MustCompile(`^(scratch|.*@sha256:[0-9a-f]{64})$`).MatchString(m[1]) {
			t.Errorf("the image %s is not pinned by its digest", m[1])
		}
	}
}
