package baseline

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
)

const (
	plain   = "[core]\n\tbare = false\n"
	planted = plain + "[core]\n\tfsmonitor = evil\n"
)

// hostIn opens the keeper of a host.
func hostIn(t *testing.T, state string) *Keeper {
	t.Helper()
	k := Open(state, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = k.Close() }) // a killed host has no more to say
	return k
}

// kill does to a keeper what SIGKILL does to its host: its locks are gone, and nothing is compared.
func kill(k *Keeper) {
	k.mu.Lock()
	w := k.watch
	k.watch = nil
	for _, t := range k.trees {
		t.stored.close()
	}
	k.trees = map[string]*tree{}
	k.mu.Unlock()
	_ = w.close()
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

// What a command has planted does not become known when another one begins, in the same host or in another one.
func TestOverlap(t *testing.T) {
	for _, same := range []bool{true, false} {
		state, dir := t.TempDir(), t.TempDir()
		config, dirs := filepath.Join(dir, ".git", "config"), []string{dir}
		write(t, config, plain)
		first := hostIn(t, state)
		second := first
		if !same {
			second = hostIn(t, state)
		}
		first.Begin(dirs, nil)
		first.watch.attend(false) // as if the command were always faster
		write(t, config, planted)
		second.Begin(dirs, nil)
		if err := first.Check(); err != nil {
			t.Fatal(err)
		}
		first.End(dirs)
		write(t, config, planted)
		if err := second.Check(); err != nil {
			t.Fatal(err)
		}
		second.End(dirs)
		holds(t, config, plain+"[core]\n")
	}
}

// What changes while no command runs was done by the user: before the first command, between two, and between two hosts, also when
// the first was killed while none ran.
func TestByUser(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	config, dirs := filepath.Join(dir, ".git", "config"), []string{dir}
	for _, end := range []func(*Keeper){func(*Keeper) {}, kill} {
		k := hostIn(t, state)
		k.Recover(dirs)
		for _, text := range []string{plain, planted, plain} {
			write(t, config, text)
			k.Begin(dirs, nil)
			if err := k.Check(); err != nil {
				t.Fatal(err)
			}
			k.End(dirs)
			holds(t, config, text)
		}
		end(k)
		write(t, config, planted)
	}
	k := hostIn(t, state)
	k.Recover(dirs)
	k.Begin(dirs, nil)
	if err := k.Check(); err != nil {
		t.Fatal(err)
	}
	k.End(dirs)
	holds(t, config, planted)
}

// What a command has left behind whose host was killed is taken out by the next one, whatever its roots are; what was taken out of a
// file is kept.
func TestRecover(t *testing.T) {
	for _, mine := range []bool{true, false} {
		state, dir := t.TempDir(), t.TempDir()
		config, settingsFile, dirs := filepath.Join(dir, ".git", "config"), filepath.Join(dir, ".claude",
			"settings.json"), []string{dir}
		write(t, config, plain)
		k := hostIn(t, state)
		k.Begin(dirs, []sandbox.Guarded{{Path: settingsFile, Root: dir, Rel: ".claude/settings.json", New: ".claude"}})
		k.watch.attend(false)
		write(t, config, planted)
		write(t, settingsFile, "{}")
		write(t, filepath.Join(dir, "sub/.git/config"), planted)
		write(t, filepath.Join(dir, "sub/.git/hooks/pre-commit"), "evil")
		if err := os.Chmod(filepath.Join(dir, "sub/.git/hooks/pre-commit"), 0o755); err != nil {
			t.Fatal(err)
		}
		kill(k)
		next := hostIn(t, state)
		roots := []string{t.TempDir()}
		if mine {
			roots = dirs
		}
		next.Recover(roots)
		holds(t, config, plain+"[core]\n")
		holds(t, filepath.Join(dir, "sub/.git/config"), plain+"[core]\n")
		for _, gone := range []string{settingsFile, filepath.Join(dir, "sub/.git/hooks/pre-commit")} {
			if _, err := os.Lstat(gone); err == nil {
				t.Errorf("%s is still there", gone)
			}
		}
		if kept, err := os.ReadFile(filepath.Join(state, "baseline", "removed.txt")); err != nil ||
			!strings.Contains(string(kept), "fsmonitor = evil") {
			t.Errorf("kept is %q, %v", kept, err)
		}
		if mine { // a command may have lived for a moment longer
			write(t, config, planted)
			next.Begin(dirs, nil)
			next.End(dirs)
			holds(t, config, plain+"[core]\n")
		}
	}
}

// TestTwoTrees has two trees of one directory: of nested roots, and of a host that starts while commands of another one
// run. Both see what is made in it.
func TestTwoTrees(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	sub := filepath.Join(dir, "sub")
	write(t, filepath.Join(sub, "x"), "")
	first, second := hostIn(t, state), hostIn(t, state)
	first.Begin([]string{dir}, nil)
	second.Recover([]string{dir})
	second.Begin([]string{dir, sub}, nil)
	second.marks(dir)
	second.marks(sub)
	made := []string{filepath.Join(sub, ".envrc"), filepath.Join(dir, ".envrc")}
	for _, path := range made {
		write(t, path, "x")
	}
	if got, _ := second.marks(sub); !slices.Equal(got, made[:1]) {
		t.Errorf("the inner root: %q", got)
	}
	got, _ := second.marks(dir)
	slices.Sort(made)
	if slices.Sort(got); !slices.Equal(got, made) {
		t.Errorf("the outer root: %q", got)
	}
	second.End([]string{dir, sub})
	first.End([]string{dir})
}

// The hooks directory of a repository is made, and no other.
func TestHooks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".git/HEAD", "sub/.git/HEAD", ".git/modules/m/HEAD", ".git/worktrees/w/HEAD",
		".git/worktrees/w/commondir", "empty/.git/x", "bare/HEAD", "bare/refs/x", "bare/objects/x"} {
		write(t, filepath.Join(dir, name), "../..\n")
	}
	k := hostIn(t, "")
	other := t.TempDir()
	write(t, filepath.Join(other, ".git/HEAD"), "x\n")
	k.Begin([]string{dir, other}, nil)
	var got []string
	for _, path := range k.Hooks([]string{dir}) {
		rel, _ := filepath.Rel(dir, path)
		got = append(got, rel)
	}
	if got, want := strings.Join(got, " "), ".git/hooks sub/.git/hooks .git/modules/m/hooks"; got != want {
		t.Errorf("held are %q, want %q", got, want)
	}
	var made []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == hooksName {
			made = append(made, path)
		}
		return err
	})
	if len(made) != 3 {
		t.Errorf("made are %q", made)
	}
}

// While commands run, only settings files that did not exist before them are withheld: those that did keep their effect.
func TestWithheld(t *testing.T) {
	dir := t.TempDir()
	was, added := filepath.Join(dir, ".claude/settings.json"), filepath.Join(dir, ".claude/settings.local.json")
	write(t, was, "{}")
	k := hostIn(t, "")
	k.Begin([]string{dir}, []sandbox.Guarded{
		{Path: filepath.Dir(was), Root: dir, Rel: ".claude", Way: true},
		{Path: added, Root: dir, Rel: ".claude/settings.local.json", New: ".claude/settings.local.json"},
		{Path: filepath.Join(dir, ".toolhost"), Root: dir, Rel: ".toolhost", New: ".toolhost", Way: true},
	})
	for path, want := range map[string]bool{was: false, added: true,
		filepath.Join(dir, ".toolhost/toolhost.json"): true} {
		if got := k.Withheld(path); got != want {
			t.Errorf("Withheld(%s) = %t, want %t", path, got, want)
		}
	}
	k.End([]string{dir})
	if k.Withheld(added) {
		t.Error("a file is withheld after the last command")
	}
}
