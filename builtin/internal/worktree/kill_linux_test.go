package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestMain is the host that [TestKilled] kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("WORKTREE_HOST"); dir != "" {
		var kill, n int
		fmt.Sscan(os.Getenv("WORKTREE_KILL"), &kill)
		step = func(string) {
			if n++; n == kill {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
		if err := host(dir, os.Getenv("WORKTREE_STATE"), os.Getenv("WORKTREE_SCRIPT"),
			os.Getenv("WORKTREE_AFTER")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testenv.Plain()
	os.Exit(m.Run())
}

// host makes a worktree, works in it, and ends and removes it as after says.
func host(dir, stateDir, script, after string) error {
	ctx := context.Background()
	w, err := In(stateDir).Make(ctx, dir, Spec{Kind: Agent, Dirty: true})
	if err != nil {
		return err
	}
	work := func() {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = w.Tree()
		_ = cmd.Run() // any of its commands may fail
	}
	if work(); after == "resume" {
		owner := "someone"
		if w.Owner = owner; w.save() != nil {
			return errors.New("the owner is not kept")
		}
		if _, err := w.End(ctx); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if w, err = In(stateDir).Resume(ctx, w.Name, owner); err != nil {
			return err
		}
		work()
		w.Owner = ""
	}
	if err := exec.Command("sh", "-c", listing+" > "+filepath.Join(stateDir, "done"), "sh",
		w.Tree()).Run(); err != nil {
		return err
	}
	report, err := w.End(ctx)
	if err != nil || report.Branch == "" {
		return err
	}
	if after == "remove" {
		return w.Remove(ctx)
	}
	return w.Close()
}

// listing lists what a tree holds, as git can know it.
const listing = `cd "$1"; find . -name .git -prune -o \( -type f -o -type l \) -print0 | sort -z | xargs -0 -r sh -c 'for f; do if [ -L "$f" ]; then echo "$f -> $(readlink "$f")"; else echo "$f $(sha256sum < "$f")"; fi; done' sh`
