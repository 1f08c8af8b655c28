package resultstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleVariable makes the test binary play another process on a shared directory.
const roleVariable = "RESULTSTORE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "unfinished":
		playUnfinished(os.Args[1])
		return
	case "keeper":
		playKeeper(os.Args[1])
		return
	}
	goleak.VerifyTestMain(m)
}

func orExit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// playUnfinished finishes one result, begins another, says their paths and waits to be killed.
func playUnfinished(dir string) {
	s, err := Open(Config{Dir: dir})
	orExit(err)
	var paths []string
	for _, name := range []string{"finished", "unfinished"} {
		f, err := s.For("p").Create(name)
		orExit(err)
		_, err = f.Write([]byte("some of it\n"))
		orExit(err)
		if name == "finished" {
			orExit(f.Close())
		}
		paths = append(paths, f.Path())
	}
	fmt.Println(strings.Join(paths, " "))
	select {}
}

// playKeeper keeps 50 results in good order.
func playKeeper(dir string) {
	s, err := Open(Config{Dir: dir})
	orExit(err)
	for i := range 50 {
		_, err := s.For("p").Fit(strings.Repeat(fmt.Sprintln(i), 100), 50)
		orExit(err)
	}
	orExit(s.Close())
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

// keep puts a finished result of that size and age in a directory.
func keep(t testing.TB, sh *PrincipalStore, size int, age time.Duration) string {
	t.Helper()
	f, err := sh.Create("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(strings.Repeat("x", size))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	makeOlder(t, f.Path(), age)
	return f.Path()
}

func makeOlder(t testing.TB, path string, age time.Duration) {
	t.Helper()
	then := time.Now().Add(-age)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// everything returns all paths below dir, but for the lock and the bare list of owners.
func everything(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		switch rel, _ := filepath.Rel(dir, path); rel {
		case ".", lockName, openName, "tidied":
		default:
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
