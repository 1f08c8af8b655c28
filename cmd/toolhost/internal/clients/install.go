package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"znkr.io/diff/textdiff"
)

// Action is the change of a client's file.
type Action string

// The actions.
const (
	Added     Action = "added"
	Updated   Action = "updated"
	Removed   Action = "removed"
	Unchanged Action = "unchanged"
)

// A Request says what to change, and how.
type Request struct {
	Env     Env
	Backups Backups
	Server  Server
	// Project is the directory whose file is edited; empty: the user's own file is.
	Project string
	// DryRun determines the change and writes nothing.
	DryRun bool
	// Force replaces entries that are not ours, and creates files for clients that do not seem to be installed.
	Force bool
	// Replace makes a trial switch the client's own tools off, and Run makes it run the client in toolhost run.
	Replace, Run bool
	// Remote is the target whose tools a trial gets, with its options; empty: the tools of this machine.
	Remote  string
	Options []string
}

// A Report says what was done.
type Report struct {
	File   string
	Action Action
	// Diff is the change, in the unified format.
	Diff string
	// Backup is the path of the backup; "" if there was no file, or nothing was written.
	Backup string
	// Replaced says that the edit concerned the client's own tools.
	Replaced bool
	// Ran is the client's own command that made the change; nil if the file was edited.
	Ran []string
}

// Install adds the server to the client's file, or updates its entry.
func (c Client) Install(ctx context.Context, r Request) (Report, error) {
	if r.Server.URL != "" && c.HTTP == nil {
		return Report{}, fmt.Errorf("the file of %s cannot name a server by its URL: leave --http out", c.Title)
	}
	file, err := c.file(r)
	if err != nil {
		return Report{}, err
	}
	if !r.Force && r.Project == "" && !c.Present(r.Env) {
		return Report{}, fmt.Errorf("%s does not seem to be installed here: neither %s nor a program of its own was found "+
			"(--force adds the entry anyway)", c.Title, strings.Join(c.signs(r.Env), ", "))
	}
	if !r.DryRun {
		if err := makeDir(r, file); err != nil {
			return Report{}, err
		}
	}
	return c.edit(ctx, r, file, installed)
}

// Uninstall removes the server from the client's file. If nothing but Install has changed the file since, it
// restores the previous content, or removes the file if there was none.
func (c Client) Uninstall(ctx context.Context, r Request) (Report, error) {
	file, err := c.file(r)
	if err != nil {
		return Report{}, err
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return Report{File: file, Action: Unchanged}, nil
	}
	return c.edit(ctx, r, file, uninstalled)
}

// file returns the path of the file that a request is about.
func (c Client) file(r Request) (string, error) {
	if !c.Editable() {
		return "", fmt.Errorf("the file of %s is not edited: toolhost install %s prints what it should say",
			c.Title, c.Name)
	}
	if r.Project == "" {
		return c.UserFile(r.Env), nil
	}
	file, ok := c.ProjectFile(r.Env, r.Project)
	if !ok {
		return "", fmt.Errorf("%s has no file for a project: leave --project out", c.Title)
	}
	return file, inProject(r.Project, file)
}

// installed is the step that adds or updates the entry of the server.
func installed(c Client, r Request, t target) (target, Action, error) {
	state, entry, err := c.inspect(t.raw, r.Server)
	if err != nil {
		return t, "", err
	}
	own := ownArguments(c, entry)
	switch {
	case state == Foreign && !r.Force:
		return t, "", fmt.Errorf("there is a server %q already that is not toolhost (%s): choose another --name, or replace "+
			"it with --force", r.Server.Name, describe(entry))
	case state == Ours && len(own) > 0 && !r.Force &&
		!same(plain(commandLine(entry)), plain(append([]string{r.Server.Command}, r.Server.Args...))):
		return t, "", fmt.Errorf("toolhost is there already with arguments of its own (%s), which would be lost: edit the "+
			"file by hand, or replace them with --force", strings.Join(own, " "))
	}
	content, err := c.put(t.raw, r.Server, state == Foreign)
	if errors.Is(err, errByHand) {
		if lines, lineErr := c.Lines(r.Server); lineErr == nil {
			err = fmt.Errorf("%w; it should say\n\n%s", err, lines)
		}
	}
	action := Updated
	if state == Absent {
		action = Added
	}
	return target{path: t.path, exists: true, raw: content}, action, err
}

// uninstalled is the step that removes the entry of the server.
func uninstalled(c Client, r Request, t target) (target, Action, error) {
	state, entry, err := c.inspect(t.raw, r.Server)
	if err != nil || state == Absent {
		return t, Unchanged, err
	}
	if state == Foreign && !r.Force {
		return t, "", fmt.Errorf("the server %q is not toolhost (%s): --force removes it", r.Server.Name,
			describe(entry))
	}
	was, ok, err := r.Backups.before(t, func(raw []byte) bool {
		state, _, err := c.inspect(raw, r.Server)
		return err == nil && state == Absent
	})
	if ok || err != nil {
		return was, Removed, err
	}
	content, err := c.take(t.raw, r.Server.Name)
	return target{path: t.path, exists: true, raw: content}, Removed, err
}

// describe summarizes an entry.
func describe(entry any) string {
	if line := commandLine(entry); len(line) > 0 {
		return strings.Join(line, " ")
	}
	if url := address(entry); url != "" {
		return url
	}
	return "of another kind"
}

// A step determines the new content of a file from the old one.
type step func(client Client, r Request, old target) (now target, done Action, err error)

// edit reads a file, determines its new content with a step, and writes it, all under a lock.
func (c Client) edit(ctx context.Context, r Request, file string, work step) (Report, error) {
	report := Report{File: file, Action: Unchanged}
	change := func() error {
		if r.Project != "" { // a program may have replaced it by a link since
			if err := inProject(r.Project, file); err != nil {
				return err
			}
		}
		old, err := readTarget(file)
		if err != nil {
			return err
		}
		now, action, err := work(c, r, old)
		if wrong := (*positionError)(nil); errors.As(err, &wrong) {
			return fmt.Errorf("%s: %w: correct the file, which was not changed", file, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if old.exists == now.exists && bytes.Equal(old.raw, now.raw) {
			return nil
		}
		if err := old.writable(); err != nil {
			return err
		}
		report.Action, report.Diff, report.Ran = action, diff(file, old, now), programLine(c, r, action)
		if r.DryRun {
			return nil
		}
		report.Backup, err = carryOut(ctx, c, r, file, old, now, action)
		return err
	}
	if r.DryRun {
		err := change()
		return report, err
	}
	t, err := readTarget(file) // its path has the links resolved, and is locked
	if err != nil {
		return report, err
	}
	err = locked(ctx, t.path, change)
	return report, err
}

// makeDir creates the directory of a new file.
func makeDir(r Request, file string) error {
	mode := os.FileMode(newDirMode)
	if r.Project != "" {
		mode = newProjectDirMode
	}
	return os.MkdirAll(filepath.Dir(file), mode)
}

// carryOut makes a backup, and then the change, with the client's own command or in the file.
func carryOut(ctx context.Context, c Client, r Request, file string, old, now target, action Action) (backup string,
	err error) {
	if backup, err = r.Backups.save(old, now.raw); err != nil {
		return "", err
	}
	switch {
	case programLine(c, r, action) != nil:
		if err = runProgram(ctx, c, r, file, now, action); err != nil {
			err = fmt.Errorf("%w\nwhat %s held before is kept in %s", err, file, backup)
		}
	case !now.exists:
		err = old.remove()
	case r.Project != "":
		err = old.replace(now.raw, newProjectMode)
	default:
		err = old.replace(now.raw, newFileMode)
	}
	if !old.exists {
		return "", err
	}
	return backup, err
}

// bearer matches a bearer token.
var bearer = regexp.MustCompile(`(?i)(\bbearer )[^"'\s${}]+`)

// diff returns the change for display, without tokens.
func diff(file string, old, now target) string {
	from, to := file, file
	if !old.exists {
		from = os.DevNull
	}
	if !now.exists {
		to = os.DevNull
	}
	text := textdiff.Unified(string(old.raw), string(now.raw))
	return "--- " + from + "\n+++ " + to + "\n" + bearer.ReplaceAllString(text, "$1…")
}

// A Status says whether and how a client uses toolhost.
type Status struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	Present bool   `json:"present"`
	// File is the path of the client's own file, which may not exist; "" for a client whose file is not edited.
	File   string `json:"file,omitempty"`
	Exists bool   `json:"exists"`
	// State is the state of the entry with the name that was asked for, or "broken" if the file cannot be read; then
	// Problem says why.
	State   State  `json:"state"`
	Server  string `json:"server,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Broken is the state of a file that cannot be read.
const Broken State = "broken"

// Status returns the status according to the client's own file.
func (c Client) Status(e Env, s Server) Status {
	status := Status{Client: c.Name, Title: c.Title, Present: c.Present(e), File: c.UserFile(e), State: Absent}
	if !c.Editable() {
		return status
	}
	t, err := readTarget(status.File)
	if err == nil {
		status.Exists = t.exists
		var entry any
		if status.State, entry, err = c.inspect(t.raw, s); entry != nil {
			status.Server = describe(entry)
		}
	}
	if err != nil {
		status.State, status.Problem = Broken, err.Error()
	}
	return status
}
