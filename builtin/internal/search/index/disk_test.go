package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

const testFormat = 7

// writerVariable makes the test's program one that saves for ever.
const writerVariable = "TOOLHOST_TEST_DISK_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerVariable); dir != "" {
		writeForEver(dir)
	}
	os.Exit(m.Run())
}

// version is what is saved as the n-th version: sections that agree with each other.
func version(n int) [][]byte {
	b := []byte(fmt.Sprint(n, ","))
	return [][]byte{b, bytes.Repeat(b, 1<<17+n%1000), {}}
}

func writeForEver(dir string) {
	d := OpenDir(dir, 1<<30, 10)
	for n := 0; ; n++ {
		if err := d.Save(context.Background(), "name", testFormat, version(n)); err != nil && !errors.Is(err, ErrBusy) {
			fmt.Println(err)
			os.Exit(1)
		}
		if n == 0 {
			fmt.Println("saved")
		}
	}
}

func newDir(t *testing.T, bytes int64, files int) *Dir {
	t.Helper()
	return OpenDir(filepath.Join(t.TempDir(), "index"), bytes, files)
}

func save(t *testing.T, d *Dir, name string, sections ...[]byte) {
	t.Helper()
	if err := d.Save(context.Background(), name, testFormat, sections); err != nil {
		t.Fatal(err)
	}
}

// load reads all of a file.
func load(d *Dir, name string, format uint32, most int64) (out [][]byte, err error) {
	f, err := d.Load(name, format, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for i := range f.Len() {
		b, err := f.Section(i)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func TestSaveLoad(t *testing.T) {
	d := newDir(t, 1<<20, 10)
	if _, err := load(d, "a", testFormat, 1<<20); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing was saved: %v", err)
	}
	for _, sections := range [][][]byte{{[]byte("one"), {}, []byte("two")}, {}, {bytes.Repeat([]byte("x"), 1000)}} {
		save(t, d, "a", sections...)
		got, err := load(d, "a", testFormat, 1<<20)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(sections) {
			t.Errorf("got %q, %v; want %q", got, err, sections)
		}
	}
	for _, again := range []func() ([][]byte, error){
		func() ([][]byte, error) { return load(d, "a", testFormat+1, 1<<20) },
		func() ([][]byte, error) { return load(d, "a", testFormat, 100) },
		func() ([][]byte, error) { return load(d, "b", testFormat, 1<<20) },
	} {
		if got, err := again(); err == nil {
			t.Errorf("loaded %q", got)
		}
	}
	if err := d.Save(context.Background(), "b", testFormat, [][]byte{make([]byte, 1<<20)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("larger than the directory: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Save(ended, "b", testFormat, [][]byte{{1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if entries, _ := os.ReadDir(d.path); len(entries) != 2 { // and the lock
		t.Errorf("left: %v", entries)
	}
}

// TestBroken changes every byte of a file, and cuts it everywhere.
func TestBroken(t *testing.T) {
	d := newDir(t, 1<<20, 10)
	save(t, d, "name", []byte("a section"), []byte("another"))
	path := d.file("name")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := load(d, "name", testFormat, 1<<20); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1 << (i % 8)
		check(fmt.Sprint("byte ", i), changed)
		check(fmt.Sprint("cut at ", i), whole[:i])
	}
	check("more", append(bytes.Clone(whole), 0))
	foreign := bytes.Clone(whole) // as a machine that has the high byte first would write numbers
	for i := len(magic); i < head-8; i += 4 {
		b := foreign[i : i+4]
		b[0], b[1], b[2], b[3] = b[3], b[2], b[1], b[0]
	}
	check("foreign", foreign)
	if err := os.Rename(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+"2", path); err == nil {
		if _, err := load(d, "name", testFormat, 1<<20); !errors.Is(err, ErrBroken) {
			t.Errorf("a link: %v", err)
		}
	}
}

// TestPart reads parts of a section whose blocks differ, and finds what is wrong in one of
// them where that is read.
func TestPart(t *testing.T) {
	d := newDir(t, 1<<20, 10)
	text := make([]byte, 3*diskBlock+100)
	for i := range text {
		text[i] = byte(i / 7)
	}
	save(t, d, "name", []byte("before"), text, []byte("behind"))
	ends := []int64{0, 1, diskBlock - 1, diskBlock, diskBlock + 1, 2 * diskBlock, 3 * diskBlock, 3*diskBlock + 99, 3*diskBlock + 100}
	open := func() *File {
		f, err := d.Load("name", testFormat, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	f := open()
	for _, from := range ends {
		for _, to := range ends {
			got, err := f.Part(1, from, to)
			if to < from {
				if err == nil {
					t.Errorf("from %d to %d: %d bytes", from, to, len(got))
				}
				continue
			}
			if err != nil || !bytes.Equal(got, text[from:to]) {
				t.Errorf("from %d to %d: %d bytes, %v", from, to, len(got), err)
			}
		}
	}
	if _, err := f.Part(1, 0, f.Size(1)+1); err == nil {
		t.Error("more than there is")
	}
	whole, err := os.ReadFile(d.file("name"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(whole, text[:diskBlock]) + diskBlock + 5
	whole[at]++
	if err := os.WriteFile(d.file("name"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	f = open()
	for from, broken := range map[int64]bool{0: false, diskBlock: true, 2 * diskBlock: false} {
		if _, err := f.Part(1, from, from+diskBlock); errors.Is(err, ErrBroken) != broken {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

func TestTrim(t *testing.T) {
	d := newDir(t, 10_000, 3)
	names := func() (out string) {
		for _, n := range strings.Fields("a b c d big") {
			if d.Size(n) > 0 {
				out += n
			}
		}
		return out
	}
	old := time.Now().Add(-time.Hour)
	for i, n := range strings.Fields("a b c") {
		save(t, d, n, make([]byte, 1000))
		if err := os.Chtimes(d.file(n), old, old.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := load(d, "a", testFormat, 1<<20); err != nil { // used: b is the oldest now
		t.Fatal(err)
	}
	left := filepath.Join(d.path, "0000"+unfinished)
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	save(t, d, "d", make([]byte, 1000))
	if got := names(); got != "acd" {
		t.Errorf("kept %s, want acd", got)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what a writer left who died is still there")
	}
	save(t, d, "big", make([]byte, 8500))
	if got := names(); got != "dbig" && got != "abig" {
		t.Errorf("kept %s, want one beside the big one", got)
	}
}

func TestUnsafe(t *testing.T) {
	d := newDir(t, 1<<20, 10)
	save(t, d, "a", []byte("x"))
	if err := os.Chmod(d.path, 0o777); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(d.path); err != nil || info.Mode().Perm() != 0o777 {
		t.Skip("there are no such rights here")
	}
	if _, err := load(d, "a", testFormat, 1<<20); !errors.Is(err, statedir.ErrUnsafe) {
		t.Errorf("loaded: %v", err)
	}
	if err := d.Save(context.Background(), "a", testFormat, nil); !errors.Is(err, statedir.ErrUnsafe) {
		t.Errorf("saved: %v", err)
	}
}

// TestKilled kills writers in the middle, two at a time, and reads next to them:
// what is read is one version as a whole.
func TestKilled(t *testing.T) {
	d := newDir(t, 1<<30, 10)
	whole := func() {
		t.Helper()
		got, err := load(d, "name", testFormat, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got[0]); len(got) != 3 || !bytes.HasPrefix(got[1], got[0]) || len(got[1])%n != 0 {
			t.Fatalf("mixed: %q and %d bytes", got[0], len(got[1]))
		}
	}
	for range 12 {
		var kills sync.WaitGroup
		for range 2 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), writerVariable+"="+d.path)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			kills.Go(func() {
				_, _ = io.ReadFull(out, make([]byte, len("saved"))) // or ErrBusy at first: then a little later
				until := time.Now().Add(time.Duration(rand.IntN(20)) * time.Millisecond)
				for time.Now().Before(until) {
					_ = d.Size("name")
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
		}
		kills.Wait()
		whole()
		save(t, d, "other", []byte("nobody holds the lock"))
		whole()
	}
	if entries, _ := os.ReadDir(d.path); len(entries) != 3 {
		t.Errorf("left: %v", entries)
	}
}

func FuzzParse(f *testing.F) {
	dir := OpenDir(filepath.Join(f.TempDir(), "index"), 1<<20, 10)
	for _, sections := range [][][]byte{{}, {[]byte("one")}, {{}, []byte("two"), []byte("three")}} {
		if err := dir.Save(context.Background(), "name", testFormat, sections); err != nil {
			f.Fatal(err)
		}
		content, err := os.ReadFile(dir.file("name"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		r := bytes.NewReader(content)
		sections, err := parseHead(r, int64(len(content)), "name", testFormat)
		if err != nil {
			return
		}
		total, file := 0, File{r: r, sections: sections}
		for i := range sections {
			b, _ := file.Section(i)
			total += len(b)
		}
		if total > len(content) {
			t.Error("more than there is")
		}
	})
}
