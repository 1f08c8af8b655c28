package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// programPatience is how long a client's own command may take; that of Claude Code needs about a second.
const programPatience = time.Minute

// programLine returns the client's own command that makes a change, or nil if the file must be edited.
func programLine(c Client, r Request, action Action) []string {
	program := ""
	if c.ViaProgram && r.Project == "" {
		program = r.Env.LookPath(c.Program)
	}
	switch {
	case program == "", isBatch(program):
		return nil
	case action == Removed:
		return []string{program, "mcp", "remove", r.Server.Name, "-s", "user"}
	}
	entry, err := json.Marshal(plain(c.entry(r.Server)))
	if err != nil {
		return nil
	}
	return []string{program, "mcp", "add-json", r.Server.Name, string(entry), "-s", "user"}
}

// isBatch reports whether a program is a batch file of Windows. Those are run by cmd.exe, which would damage the
// quotes in an entry.
func isBatch(program string) bool {
	ext := strings.ToLower(filepath.Ext(program))
	return ext == ".cmd" || ext == ".bat"
}

// runProgram runs the client's own command, and then checks the file.
func runProgram(ctx context.Context, c Client, r Request, file string, now target, action Action) error {
	ctx, cancel := context.WithTimeout(ctx, programPatience)
	defer cancel()
	_, want, err := c.inspect(now.raw, r.Server)
	if err != nil {
		return err
	}
	line := programLine(c, r, action)
	if action == Updated { // the command does not replace an entry, and existing members must stay
		if err := run(ctx, programLine(c, r, Removed)); err != nil {
			return err
		}
		entry, err := json.Marshal(want)
		if err != nil {
			return err
		}
		line[4] = string(entry)
	}
	if err := run(ctx, line); err != nil {
		return err
	}
	t, err := readTarget(file)
	if err != nil {
		return err
	}
	if _, got, err := c.inspect(t.raw, r.Server); err != nil || !same(got, want) {
		return errors.Join(err, fmt.Errorf("%s did not change %s as meant: look at the file", strings.Join(line[:3], " "),
			file))
	}
	return nil
}

func run(ctx context.Context, line []string) error {
	cmd := hostprogram.Command(ctx, line[0], line[1:]...)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s failed: %w\n%s", strings.Join(line[:3], " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
