package readstate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleVariable makes the test binary play another process on a shared directory.
const roleVariable = "READSTATE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "reader":
		playReader(os.Args[1], os.Args[2])
		return
	case "writer":
		playWriter(os.Args[1])
		return
	}
	goleak.VerifyTestMain(m)
}

// playReader sees 50 files of its own in the scope "shared" and ends in good order.
func playReader(dir, name string) {
	s, err := Open(Config{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := range 50 {
		s.Scope("shared", true).MarkRead(fmt.Sprintf("/%s/%d", name, i), version{}, []byte(name))
		if i%10 == 0 {
			if err := s.flush(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// playWriter writes the scope "killed" over and over until it is killed, and says when the first writing is done.
func playWriter(dir string) {
	s, err := Open(Config{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		sc := s.Scope("killed", true)
		sc.MarkRead("/first", version{}, []byte("first"))
		sc.MarkRead(fmt.Sprintf("/%d", i%2000), version{}, fmt.Append(nil, i))
		if err := s.flush(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if i == 0 {
			fmt.Println("written")
		}
	}
}

// open returns a Store that is closed when the test ends.
func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// write puts content into a file with that time and returns its version.
func write(t testing.TB, path, content string, mtime time.Time) version {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, mtime, mtime); err != nil {
		t.Fatal(err)
	}
	return VersionOf(stat(t, path))
}

func stat(t testing.TB, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// check asks as a tool does: with the stat and the bytes of the file on disk.
func check(t testing.TB, sc *Scope, path string) Status {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sc.Check(path, stat(t, path), content)
}

// files returns the names in a directory that match a pattern.
func files(t testing.TB, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
