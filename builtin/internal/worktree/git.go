package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// Limits of what git prints: a repository that an agent writes can have millions of refs and files.
const (
	// maxGitOutput is how much of it is kept, in bytes. It is more than the names of 500,000 files have.
	maxGitOutput = 64 << 20
	// maxGitError is how much of what git says of a failure is shown, in bytes.
	maxGitError = 2000
)

var errLongOutput = fmt.Errorf("git printed more than %d MiB: the repository is too large for a worktree",
	maxGitOutput>>20)

// A limitedBuffer keeps up to max bytes. Of more it fails, unless it is lossy. It has no ReadFrom, by which a copy
// would avoid Write.
type limitedBuffer struct {
	text  bytes.Buffer
	max   int
	lossy bool
	full  bool // more was written
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	room := b.max - b.text.Len()
	if b.full = b.full || len(p) > room; b.full && !b.lossy {
		return 0, errLongOutput
	}
	b.text.Write(p[:min(len(p), room)])
	return len(p), nil
}

// A gitRun is one run of git.
type gitRun struct {
	dir string   // working directory
	env []string // in addition
	in  io.Reader
	out *os.File // where its output goes; nil: git returns it
	// start starts the process; nil: as any other.
	start func(*exec.Cmd) error
}

// git runs git and returns what it prints.
func (r gitRun) git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := hostprogram.Command(ctx, "git", args...)
	out, said := limitedBuffer{max: maxGitOutput}, limitedBuffer{max: maxGitError, lossy: true}
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.dir, r.in, &out, &said
	if r.out != nil {
		cmd.Stdout = r.out
	}
	cmd.Env = append(plainEnvironment(cmd.Env), r.env...)
	if r.start == nil {
		r.start = (*exec.Cmd).Start
	}
	err := r.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("worktrees need git 2.38 or later: %w. Install it, or let the agent work in place: toolhost "+
			"run -- CLIENT; toolhost rewind takes back what it does", err)
	}
	if out.full { // the error of Run can also be that git could not write
		return nil, fmt.Errorf("git %s: %w", args[0], errLongOutput)
	}
	if err != nil {
		return out.text.Bytes(), &gitError{what: args[0], err: err, said: strings.TrimSpace(said.text.String())}
	}
	return out.text.Bytes(), nil
}

// text is git with what it prints as one line.
func (r gitRun) text(ctx context.Context, args ...string) (string, error) {
	out, err := r.git(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

type gitError struct {
	what, said string
	err        error
}

func (e *gitError) Error() string { return fmt.Sprintf("git %s: %v: %s", e.what, e.err, e.said) }

func (e *gitError) Unwrap() error { return e.err }

// plainEnvironment returns an environment without what steers git: GIT_DIR of a hook that started us, for one.
func plainEnvironment(env []string) []string {
	env = slices.DeleteFunc(env,
		func(entry string) bool { return strings.HasPrefix(entry, "GIT_") || strings.HasPrefix(entry, "LC_") })
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_AUTHOR_NAME=toolhost", "GIT_AUTHOR_EMAIL=toolhost@localhost", "GIT_COMMITTER_NAME=toolhost", "GIT_COMMITTER_EMAIL=toolhost@localhost")
}

// A store is a git directory of the host that uses the objects and refs of a repository. The host writes its
// configuration: of the repository's it takes only values that run no program. So no hook, filter, file system
// monitor, diff or merge driver that is there, or that a child plants in its worktree, is ever run.
type store struct {
	dir     string
	objects string // of the repository
	start   Start
}

// run is a run of git on the store, whose index is the file of that name in it.
func (s store) run(index string) gitRun {
	env := []string{
		"GIT_DIR=" + s.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_INDEX_FILE=" + filepath.Join(s.dir, index),
		"GIT_OBJECT_DIRECTORY=" + s.objects, // by their own path: alternates may be relative to it
	}
	r := gitRun{dir: s.dir, env: env}
	if s.start != nil {
		writable := []string{filepath.Dir(s.dir), filepath.Dir(s.objects)}
		r.start = func(cmd *exec.Cmd) error { return s.start(cmd, writable) }
	}
	return r
}

// on is run with a work tree.
func (s store) on(tree, index string) gitRun {
	r := s.run(index)
	r.dir, r.env = tree, append(r.env, "GIT_WORK_TREE="+tree)
	return r
}

// taken are the keys of a repository's configuration that the store and the child's repository take over.
var taken = map[string]bool{
	"core.repositoryformatversion": true, "core.filemode": true, "core.symlinks": true, "core.ignorecase": true, "core.precomposeunicode": true,
	"core.autocrlf": true, "core.eol": true, "core.excludesfile": true, "core.longpaths": true, "extensions.objectformat": true, "merge.conflictstyle": true,
	"user.name": true, "user.email": true,
}

// ours are set in every configuration that is written here.
var ours = map[string]string{"core.bare": "false", "gc.auto": "0", "maintenance.auto": "false"}

// writeConfig writes a configuration.
func writeConfig(file string, settings ...map[string]string) error {
	all := map[string]string{}
	for _, s := range settings {
		maps.Copy(all, s)
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		section, name := key[:strings.IndexByte(key, '.')], key[strings.LastIndexByte(key, '.')+1:]
		if sub := strings.TrimSuffix(strings.TrimPrefix(key, section+"."), name); sub != "" {
			section += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.TrimSuffix(sub, ".")) + `"`
		}
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(all[key])
		fmt.Fprintf(&b, "[%s]\n\t%s = \"%s\"\n", section, name, value)
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}

// fields splits what git -z prints.
func fields(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}
