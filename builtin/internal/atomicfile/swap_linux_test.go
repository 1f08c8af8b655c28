package atomicfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// save saves a file as most programs do: by a rename of a file next to it.
func save(t testing.TB, path, content string) {
	t.Helper()
	if err := saveAs(path, content); err != nil {
		t.Fatal(err)
	}
}

func saveAs(path, content string) error {
	if err := os.WriteFile(path+".save", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".save", path)
}

// TestOvertaken: what another program puts in the place of the file while a call runs stands, and nothing else is left.
func TestOvertaken(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(path string) error
		want   func(path string) bool
	}{
		{"saved by a rename", func(path string) error { return saveAs(path, "theirs") }, holdsText("theirs")},
		{"saved again as it was", func(path string) error { return saveAs(path, "old") }, holdsText("old")},
		{"saved twice", func(path string) error { return errors.Join(saveAs(path, "one"), saveAs(path, "two")) }, holdsText("two")},
		{"removed", os.Remove, func(path string) bool { _, err := os.Lstat(path); return errors.Is(err, fs.ErrNotExist) }},
		{"removed and made anew", func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("theirs"), 0o600))
		}, holdsText("theirs")},
		{"moved away", func(path string) error { return os.Rename(path, path+".moved") }, func(path string) bool {
			_, err := os.Lstat(path)
			defer os.Remove(path + ".moved")
			return errors.Is(err, fs.ErrNotExist) && holdsText("old")(path+".moved")
		}},
		{"a symbolic link now", func(path string) error { return errors.Join(os.Remove(path), os.Symlink("elsewhere", path)) }, func(path string) bool {
			to, _ := os.Readlink(path)
			return to == "elsewhere"
		}},
		{"a directory now", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, isKind(fs.ModeDir)},
		{"a FIFO now", func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, isKind(fs.ModeNamedPipe)},
		{"linked to another file", func(path string) error {
			return errors.Join(os.WriteFile(path+".other", []byte("theirs"), 0o600), os.Remove(path),
				os.Link(path+".other", path), os.Remove(path+".other"))
		}, holdsText("theirs")},
	} {
		for _, remove := range []bool{false, true} {
			for _, links := range []int{1, 2} { // two: it is written in place
				t.Run(fmt.Sprintf("%s, remove %v, %d links", tt.name, remove, links), func(t *testing.T) {
					dir, path, journal := room(t)
					file := filepath.Join(path, "f")
					put(t, file, "old", 0o640)
					if links == 2 {
						link(t, file, filepath.Join(path, "g"))
					}
					o := Options{JournalDir: journal, Expect: once(func() error { return tt.change(file) })}
					var err error
					if remove {
						err = Remove(dir, "f", o)
					} else {
						_, err = Replace(dir, "f", o, []byte("new"))
					}
					gone := remove && (tt.name == "removed" || tt.name == "moved away")
					if errors.Is(err, ErrOvertaken) == gone {
						t.Errorf("error %v", err)
					}
					if !tt.want(file) {
						t.Errorf("what the other program left is gone: %q", list(t, path))
					}
					if links == 2 {
						if got := content(t, filepath.Join(path, "g")); got != "old" {
							t.Errorf("the other name holds %q", got)
						}
						os.Remove(filepath.Join(path, "g"))
					}
					for _, name := range list(t, path) {
						if name != "f" {
							t.Errorf("left behind: %s", name)
						}
					}
					if got := list(t, journal); len(got) > 0 {
						t.Errorf("journal has %q", got)
					}
				})
			}
		}
	}
}

// once is an Expect that does something when it is asked first.
func once(do func() error) func(*os.File) error {
	done := false
	return func(*os.File) error {
		if done {
			return nil
		}
		done = true
		return do()
	}
}

func holdsText(want string) func(string) bool {
	return func(path string) bool {
		got, err := os.ReadFile(path)
		return err == nil && string(got) == want
	}
}

func isKind(mode fs.FileMode) func(string) bool {
	return func(path string) bool {
		info, err := os.Lstat(path)
		return err == nil && info.Mode().Type() == mode
	}
}

// TestCreateOvertaken: a file that another program makes while a call makes it stands.
func TestCreateOvertaken(t *testing.T) {
	for _, must := range []bool{false, true} {
		dir, path, journal := room(t)
		file := filepath.Join(path, "f")
		o := Options{JournalDir: journal, MustNotExist: must,
			Expect: once(func() error { return os.WriteFile(file, []byte("theirs"), 0o600) })}
		if _, err := Replace(dir, "f", o, []byte("new")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("error %v", err)
		}
		if got := content(t, file); got != "theirs" {
			t.Errorf("content %q", got)
		}
		tidy(t, path, journal, "f")
	}
}

// TestPutBackTheLatest: what is put in the place of the new file while it stands for another's is the latest, and keeps the name.
func TestPutBackTheLatest(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(path string) error
		want      string
		stands    bool
	}{
		"nothing":           {func(string) error { return nil }, "theirs", true},
		"saved again":       {func(path string) error { return saveAs(path, "latest") }, "latest", false},
		"removed":           {os.Remove, "theirs", true},
		"removed and saved": {func(path string) error { return errors.Join(os.Remove(path), saveAs(path, "latest")) }, "latest", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, path, _ := room(t)
			file := filepath.Join(path, "f")
			put(t, file, "new", 0o600)
			put(t, filepath.Join(path, "aside"), "theirs", 0o600)
			handle, err := openHandle(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer handle.Close()
			r := &replacement{dir: dir, handle: handle, base: "f",
				exchanged: &temp{dir: dir, handle: handle, name: "aside"}}
			if r.ours, err = pin(dir, handle, "f"); err != nil {
				t.Fatal(err)
			}
			defer r.ours.release()
			exchanged := r.exchanged
			if err := tt.meanwhile(file); err != nil {
				t.Fatal(err)
			}
			if stands, err := r.putBack(); err != nil || stands != tt.stands {
				t.Errorf("stands %v, %v", stands, err)
			}
			exchanged.discard()
			holds(t, file, tt.want)
			if got := list(t, path); len(got) != 1 {
				t.Errorf("left: %q", got)
			}
		})
	}
}

// childMark replaces a file again and again by what it holds and a mark.
func childMark(path, journal string) error {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	var temps Temps
	for i := 0; err == nil; i++ {
		var was []byte
		if was, err = os.ReadFile(filepath.Join(path, "f")); err != nil {
			return err
		}
		theirs, _, _ := bytes.Cut(was, []byte(" "))
		_, err = Replace(dir, "f", Options{JournalDir: journal, Temps: &temps, Expect: func(f *os.File) error {
			now, err := io.ReadAll(f)
			if err == nil && !bytes.Equal(was, now) {
				err = ErrOvertaken
			}
			_, seek := f.Seek(0, io.SeekStart)
			return errors.Join(err, seek)
		}}, theirs, []byte(" marked "+strconv.Itoa(i)))
		if errors.Is(err, ErrOvertaken) {
			err = nil
		}
		if i == 0 {
			fmt.Println("started")
		}
	}
	return err
}

// TestKillWhileSaved kills a process that replaces a file while another program saves it by renames. The last version that was saved is
// there afterwards, with or without a mark, and nothing else is. ATOMICFILE_KILLS sets how often.
func TestKillWhileSaved(t *testing.T) {
	rounds := 50
	if n, err := strconv.Atoi(os.Getenv("ATOMICFILE_KILLS")); err == nil {
		rounds = n
	}
	restored, saves := 0, 0
	for i := range rounds {
		path, journal := memoryRoom(t)
		file := filepath.Join(path, "f")
		save(t, file, "0")
		cmd := child("mark", path, journal)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = io.ReadFull(out, make([]byte, len("started\n")))
		}
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for end := time.Now().Add(time.Duration(rand.IntN(4000)) * time.Microsecond); time.Now().Before(end); {
			last++
			save(t, file, strconv.Itoa(last))
		}
		if i%2 == 0 {
			cmd.Process.Kill()
		} else { // while it is saved
			killed := make(chan struct{})
			go func() { cmd.Process.Kill(); close(killed) }()
			last++
			save(t, file, strconv.Itoa(last))
			<-killed
		}
		cmd.Wait()
		report := recoverDead(t, journal)
		restored += len(report.Restored)
		saves += last
		for _, at := range report.Saved { // a version that another save has replaced since
			os.Remove(at)
		}
		got, _, _ := strings.Cut(content(t, file), " ")
		if got != strconv.Itoa(last) {
			t.Fatalf("round %d: %q was saved last, and the file holds %q; %+v", i, strconv.Itoa(last),
				content(t, file), report)
		}
		tidy(t, path, journal, "f")
	}
	t.Logf("%d kills, %d versions saved: %d put back by Recover", rounds, saves, restored)
}

// recoverDead recovers what a process left that was killed, and whose locks may end a moment later.
func recoverDead(t *testing.T, journal string) Report {
	t.Helper()
	report, err := Recover(context.Background(), journal)
	for err == nil && len(list(t, journal)) > 0 && len(report.Saved) == 0 {
		var more Report
		more, err = Recover(context.Background(), journal)
		report.Restored = append(report.Restored, more.Restored...)
		report.Saved = more.Saved
	}
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestRecoverExchanged: whatever a kill between two exchanges leaves, another program's version is not lost.
func TestRecoverExchanged(t *testing.T) {
	const name = tempPrefix + "X" + tempSuffix
	for _, tt := range []struct {
		what        string
		file, temp  string // content
		want, saved string
		in, out     string // as it was noted, if it was put back
	}{
		{what: "before the exchange", file: "old", temp: "new", want: "old"},
		{what: "after the exchange", file: "new", temp: "old", want: "new"},
		{what: "theirs aside", file: "new", temp: "theirs", want: "theirs"},
		{what: "theirs aside, and a later one", file: "later", temp: "theirs", want: "later", saved: "theirs"},
		{what: "theirs aside, and nothing", temp: "theirs", want: "theirs"},
		{what: "put back", file: "theirs", temp: "new", want: "theirs"},
		{what: "before it is put back", file: "new", temp: "theirs", want: "theirs", in: "theirs", out: "new"},
		{what: "when it is put back", file: "theirs", temp: "new", want: "theirs", in: "theirs", out: "new"},
		{what: "when it is put back, and a later one aside", file: "theirs", temp: "later", want: "later", in: "theirs", out: "new"},
		{what: "before a later one is put back", file: "theirs", temp: "later", want: "later", in: "later", out: "theirs"},
		{what: "when a later one is put back", file: "later", temp: "theirs", want: "later", in: "later", out: "theirs"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			dir, path, journal := room(t)
			inode := map[string]uint64{}
			for _, text := range []string{"old", "new", "theirs", "later"} {
				put(t, filepath.Join(path, text), text, 0o600)
				inode[text] = stat(t, filepath.Join(path, text)).Ino
			}
			for from, to := range map[string]string{tt.file: "f", tt.temp: name} {
				if from != "" {
					if err := dir.Rename(from, to); err != nil {
						t.Fatal(err)
					}
				}
			}
			h := header{Dir: path, Base: name, Target: "f", Ino: inode["old"], NewIno: inode["new"]}
			if tt.in != "" {
				h.Ino, h.NewIno, h.Back = inode[tt.out], inode[tt.in], true
			}
			e, err := recordTemp(journal, path, name)
			if err == nil {
				err = e.write(h)
			}
			if err != nil {
				t.Fatal(err)
			}
			e.abandon()
			report, err := Recover(context.Background(), journal)
			if err != nil {
				t.Fatal(err)
			}
			holds(t, filepath.Join(path, "f"), tt.want)
			if at := report.Saved[filepath.Join(path, "f")]; (at != "") != (tt.saved != "") || at != "" &&
				content(t, at) != tt.saved {
				t.Errorf("saved %q", report.Saved)
			}
			if _, err := dir.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the temporary name is still there: %v", err)
			}
		})
	}
}

// TestWithoutExchange: where names cannot be exchanged, a file that was replaced before the rename is left alone all the same.
func TestWithoutExchange(t *testing.T) {
	dir, path, journal := room(t)
	file := filepath.Join(path, "f")
	put(t, file, "old", 0o600)
	handle, err := openHandle(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	for _, overtaken := range []bool{false, true} {
		r := &replacement{dir: dir, handle: handle, base: "f", Options: Options{JournalDir: journal}}
		if err := r.openCurrent(); err != nil {
			t.Fatal(err)
		}
		tmp := r.newTemp()
		if err := errors.Join(tmp.write([][]byte{[]byte("new")}, tempMode), tmp.close(false)); err != nil {
			t.Fatal(err)
		}
		want := "new"
		if overtaken {
			save(t, file, "theirs")
			want = "theirs"
		}
		if err := r.renameOver(tmp, r.was); errors.Is(err, ErrOvertaken) != overtaken {
			t.Errorf("error %v", err)
		}
		tmp.discard()
		r.current.Close()
		holds(t, file, want)
		tidy(t, path, journal, "f")
	}
}

// TestOvertakenBySed: sed -i saves by a rename.
func TestOvertakenBySed(t *testing.T) {
	dir, path, journal := room(t)
	file := filepath.Join(path, "f")
	put(t, file, "old\n", 0o600)
	o := Options{JournalDir: journal, Expect: once(func() error { return exec.Command("sed", "-i", "s/old/theirs/", file).Run() })}
	if _, err := Replace(dir, "f", o, []byte("new\n")); !errors.Is(err, ErrOvertaken) {
		t.Errorf("error %v", err)
	}
	holds(t, file, "theirs\n")
	tidy(t, path, journal, "f")
}
