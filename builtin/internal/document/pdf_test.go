package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// worker is, with the race detector, a program without it: PDFium is 30 times as slow with it.
var worker struct {
	once sync.Once
	dir  string
	err  error
}

// removeWorker removes what testOptions made.
func removeWorker() {
	if worker.dir != "" {
		os.RemoveAll(worker.dir)
	}
}

// testOptions are options of which PDFium is compiled once in the user's cache directory, for all runs of the tests.
func testOptions(tb testing.TB) PDFOptions {
	tb.Helper()
	if testing.Short() {
		tb.Skip("slow: compiles PDFium")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		tb.Skip(err)
	}
	o := PDFOptions{CacheDir: filepath.Join(cache, "toolhost-test", "pdfium")}
	if !raceDetector {
		return o
	}
	worker.once.Do(func() {
		if worker.dir, worker.err = os.MkdirTemp("", "document"); worker.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", filepath.Join(worker.dir, "pdfworker.exe"),
			"./testdata/pdfworker").CombinedOutput()
		if err != nil {
			worker.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if worker.err != nil {
		tb.Fatal(worker.err)
	}
	o.program = filepath.Join(worker.dir, "pdfworker.exe")
	return o
}

func readPDF(tb testing.TB, content []byte, from, to int) (*Pages, error) {
	tb.Helper()
	return PDF(tb.Context(), openFile(tb, content), from, to, testOptions(tb))
}

// TestPDFDraw draws a page that has text, and takes the file as its offset stands.
func TestPDFDraw(t *testing.T) {
	testenv.NotShort(t, "compiles the reader")
	f := openFile(t, makePDF("", textPage("Hello")))
	if _, err := f.Seek(7, 0); err != nil {
		t.Fatal(err)
	}
	o := testOptions(t)
	o.Draw = true
	p, err := PDF(t.Context(), f, 1, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Pictures) != 1 || len(p.Text) != 1 || p.Text[0] != "Hello" {
		t.Errorf("got %d pictures and %q", len(p.Pictures), p.Text)
	}
	if at, _ := f.Seek(0, 1); at != 7 {
		t.Errorf("the file stands at %d, want 7", at)
	}
}

// TestPDFText stops before an answer becomes too long, and says how to go on.
func TestPDFText(t *testing.T) {
	lines := make([]string, 500)
	for i := range lines {
		lines[i] = strings.Repeat("many words ", 10)
	}
	long := textPage(lines...)
	long.box = "0 -9000 2000 792"
	p, err := readPDF(t, makePDF("", long, long, long), 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Text) != 1 || !strings.Contains(strings.Join(p.Notes, "\n"), `Go on with pages="2-3"`) {
		t.Errorf("got %d pages, notes %q", len(p.Text), p.Notes)
	}
	less := testOptions(t)
	less.MaxText = 50
	short := textPage("thirty characters at the least")
	p, err = PDF(t.Context(), openFile(t, makePDF("", short, short, short)), 1, 3, less)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Text) != 1 || !strings.Contains(strings.Join(p.Notes, "\n"), `Go on with pages="2-3"`) {
		t.Errorf("of %d bytes: got %d pages, notes %q", less.MaxText, len(p.Text), p.Notes)
	}
}

// TestPDFOwnProgram starts this very test binary as a worker. It gets no further
// than that there is nothing to read: under the race detector PDFium takes 30 s.
func TestPDFOwnProgram(t *testing.T) {
	_, err := PDF(t.Context(), openFile(t, nil), 1, 1, PDFOptions{})
	if err == nil || err.Error() != "the file is empty" {
		t.Errorf("got %v", err)
	}
}

func TestPDFCancelled(t *testing.T) {
	cause := errors.New("nobody waits any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := PDF(ctx, openFile(t, makePDF("", textPage("a"))), 1, 1, testOptions(t))
	if err == nil {
		t.Error("got no error")
	}
}

// TestPDFTimeout has a worker that never answers.
func TestPDFTimeout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell script")
	}
	o := PDFOptions{Timeout: 50 * time.Millisecond,
		program: script(t, "echo '{\"Total\":3}'; echo '{\"Text\":\"one\"}'; exec sleep 1000")}
	p, err := PDF(t.Context(), openFile(t, nil), 1, 3, o)
	if err != nil && !strings.Contains(err.Error(), "took too long") { // too slow even for the first page
		t.Errorf("got %+v, %v", p, err)
	}
	if err == nil && (p.Text[0] != "one" || !strings.Contains(p.Notes[0], "Page 2 could not be read: the PDF reader was stopped: it took too long")) {
		t.Errorf("got %+v", p)
	}
}

// TestPDFWorkerLies has workers that a file has turned against us.
func TestPDFWorkerLies(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs shell scripts")
	}
	tests := []struct{ name, script, want string }{
		{"crash", `echo 'fatal error: out of memory' >&2; exit 2`, "the PDF reader failed on this file (exit status 2): fatal error: out of memory"},
		{"no JSON", `echo hello`, "cannot decode the answer"},
		{"endless noise", `exec yes`, "cannot decode the answer"},
		{"endless text", `echo '"'; exec tr '\0' a </dev/zero`, "cannot decode the answer"},
		{"nothing", `exit 0`, "the PDF reader failed on this file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := PDF(t.Context(), openFile(t, nil), 1, 3, PDFOptions{program: script(t, tt.script)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	o := PDFOptions{program: script(t, `exec yes '{"Text":"a"}'`)}
	p, err := PDF(t.Context(), openFile(t, nil), 1, 3, o)
	if err != nil || len(p.Text) != 3 || !strings.Contains(p.Notes[0], "more pages than it was asked for") {
		t.Errorf("got %+v, %v", p, err)
	}
	o.program = script(t, `echo '{"Total":1}{"PNG":"bm8gcGljdHVyZQ=="}{"Done":true}'`)
	p, err = PDF(t.Context(), openFile(t, nil), 1, 1, o)
	if err != nil || len(p.Pictures) != 0 || !strings.Contains(p.Notes[0], "Page 1 could not be drawn: the content is text") {
		t.Errorf("got %+v, %v", p, err)
	}
}

// script returns a program that runs a shell script.
func script(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "worker")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+"PATH=/bin:/usr/bin\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPDFMutated changes bytes of a good file. Whatever becomes of it, there is
// an answer or an error, and no worker is left.
func TestPDFMutated(t *testing.T) {
	good := makePDF("", textPage("Hello", "world"), drawnPage(), textPage("end"))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range samples.Rounds(50) {
		bad := bytes.Clone(good)
		for range 1 + random.IntN(30) {
			switch at := random.IntN(len(bad)); random.IntN(3) {
			case 0:
				bad[at] = byte(random.Uint32())
			case 1:
				bad = append(bad[:at], bad[min(len(bad), at+random.IntN(20)):]...)
			default:
				bad = append(bad[:at:at], append([]byte("99999999"), bad[at:]...)...)
			}
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p, err := readPDF(t, bad, 1, 3)
			if err == nil && p.Total < 1 {
				t.Errorf("got neither pages nor an error: %+v", p)
			}
			if err != nil && strings.Contains(err.Error(), "took too long") {
				t.Error(err)
			}
		})
	}
}

func TestCacheDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no modes")
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{open: "is open to other users", link: "is not a directory",
		"/dev/null": "could not be made"} {
		if got, err := cacheDir(dir); err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("cacheDir(%s): got %q, %v, want an error with %q", dir, got, err, want)
		}
	}
	fresh := filepath.Join(t.TempDir(), "a", "b")
	if got, err := cacheDir(fresh); err != nil || got != fresh {
		t.Errorf("cacheDir(%s): got %q, %v", fresh, got, err)
	}
}

// TestCacheDirStale removes what a killed worker left, not what a live one writes.
func TestCacheDirStale(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(dir, "wazero-v1")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"a.1.tmp": 2 * staleAge, "b.2.tmp": 0, "c": 2 * staleAge} {
		path := filepath.Join(sub, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cacheDir(dir); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(sub, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb":              "a\nb",
		"hyphen\x02\r\nated":  "hyphen-\nated",
		"\ufffe a\x00b\uffff": "- ab",
		"\t\n":                "",
	} {
		if got := cleanText(in); got != want {
			t.Errorf("cleanText(%q) = %q, want %q", in, got, want)
		}
	}
}
