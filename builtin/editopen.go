package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/guard"
)

// lockWait bounds the wait for other changes of the same file. Each takes milliseconds.
const lockWait = 30 * time.Second

// openTarget locks a file and reads it. Missing parents are made when create says so; the call has been
// judged by then.
func openTarget(ctx context.Context, env *Env, path guard.Path, create bool) (*target, error) {
	if err := refuseSpecial(path); err != nil {
		return nil, err
	}
	if create {
		return openMaking(ctx, env, path)
	}
	t, err := lockTarget(ctx, env, path)
	if errors.Is(err, errNoDir) {
		return nil, missing(ctx, env, path)
	}
	return t, err
}

// makeTries is how often directories are made for a file, which another call that made them before takes away when it fails.
const makeTries = 10

// openMaking is openTarget of a file whose directories are made. Those go again if the file is not.
func openMaking(ctx context.Context, env *Env, path guard.Path) (*target, error) {
	for tries := 1; ; tries++ {
		unmake, err := path.MakeParents(0o777)
		if err != nil && env.Runtime.history.Fills(existing(path), err) && env.Runtime.history.Shrink() {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the directory for %s could not be made: %w%s", path, inFile(path, err), atomicfile.Advice(err))
		}
		t, err := lockTarget(ctx, env, path)
		if err == nil {
			t.undoMkdir = unmake
			return t, nil
		}
		unmake()
		again := errors.Is(err, errNoDir) || errors.Is(err, guard.ErrSwapped) // taken away, or made anew by a third
		if !again || tries == makeTries {
			return nil, err
		}
	}
}

// existing is the nearest directory above a file that exists.
func existing(path guard.Path) string {
	dir := filepath.Dir(path.Real())
	for dir != filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// errNoDir is the failure of a lockTarget whose directory is missing, or was taken away while it waited.
var errNoDir = errors.New("its directory is missing")

// lockTarget locks a file and reads it.
func lockTarget(ctx context.Context, env *Env, path guard.Path) (*target, error) {
	dir, base, err := path.OpenParent()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s was not changed: %w", path, errNoDir)
	}
	if err != nil {
		return nil, fmt.Errorf("the directory of %s could not be opened: %w", path, inFile(path, err))
	}
	unlock, err := lockDir(ctx, env, dir, filepath.Dir(path.String()))
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("%s was not changed: %w", path, err)
	}
	t := &target{path: path, dir: dir, base: base, unlock: unlock, undoMkdir: func() {}}
	if err = t.load(); err == nil && t.missing && !t.inPlace() {
		err = fmt.Errorf("%s was not changed: %w", path, errNoDir)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// inPlace reports whether the directory that was locked is still the one of the file.
func (t *target) inPlace() bool {
	now, _, err := t.path.OpenParent()
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer now.Close()
	there, err := now.Stat(".")
	if err != nil {
		return true
	}
	locked, err := t.dir.Stat(".")
	return err != nil || os.SameFile(there, locked)
}

// lockDir waits for its turn among the changes in a directory.
func lockDir(ctx context.Context, env *Env, dir *os.Root, name string) (unlock func(), err error) {
	unlock, err = env.Runtime.locks.Lock(ctx, dir, lockWait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("another program has kept %s locked for %v, as flock does; end it (a background task with TaskStop), then repeat the call", name, lockWait)
	}
	return unlock, err
}
