package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/document"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// editInput is the input of [editTool].
type editInput struct {
	FilePath   string `json:"file_path" jsonschema:"the file to change: absolute, ~/… or relative to the first root"`
	OldString  string `json:"old_string" jsonschema:"the text to replace, as Read showed it without the line numbers; empty to create a file"`
	NewString  string `json:"new_string" jsonschema:"the text to put there"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence instead of the only one"`
}

// changeOutput is the structured result of an [editTool] or a [writeTool].
type changeOutput struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements,omitempty"`
	Created      bool   `json:"created"`
	Bytes        int    `json:"bytes"`
}

// changeLimit is the longest result of an Edit or a Write, in characters.
const changeLimit = 30_000

// editTool replaces text in a file.
var editTool = declare(Tool[editInput]{
	Name:         "Edit",
	SeesHeld:     true,
	Title:        "Edit a file",
	Brief:        "edit a file",
	Core:         true,
	Hints:        Hints{Closed: true},
	Permission:   guard.ToWrite,
	Limit:        changeLimit,
	Uncancelable: true,
	Plan: func(_ context.Context, env *Env, in editInput) (Plan, error) {
		if in.OldString == in.NewString {
			return Plan{}, errors.New("old_string and new_string are the same: give a new_string that differs")
		}
		path, err := findEdited(env.Policy, in)
		if err != nil {
			return Plan{}, err
		}
		note := ""
		if in.ReplaceAll {
			note = "at every place of the text"
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Write{Path: path.Path, Removed: in.OldString, Added: in.NewString,
				Note:    note,
				Preview: func() string { return previewEdit(env, path.Path, in) }}}},
			Run: func(ctx context.Context) (Result, error) { return path.say(edit(ctx, env, path.Path, in)) },
		}, nil
	},
})

// findEdited resolves the name of a file to change, or to create.
func findEdited(policy *guard.Policy, in editInput) (named, error) {
	if in.OldString == "" {
		return findNew(policy, in.FilePath)
	}
	return findNamed(policy, in.FilePath)
}

func edit(ctx context.Context, env *Env, path guard.Path, in editInput) (Result, error) {
	t, err := openTarget(ctx, env, path, in.OldString == "")
	if err != nil {
		return Result{}, err
	}
	defer t.close()
	if in.OldString == "" && len(t.content) == 0 {
		return t.create(env, in.NewString)
	}
	if t.missing {
		return Result{}, missing(ctx, env, path)
	}
	standing, err := t.freshness(env, true)
	if standing.State == readstate.Unread {
		err = t.showPlace(env, in, err)
	}
	if err != nil {
		return Result{}, err
	}
	before, match, err := t.find(standing, in)
	if err != nil {
		return Result{}, err
	}
	content, err := text.Apply(before, match)
	if wider := t.retryUTF8(err); wider != nil {
		content, err = text.Apply(wider, match) // ASCII is as long in both
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s was not changed: %w", path, err)
	}
	diff, complete := match.Diff(path.String(), before, contextLines, diffLines)
	note, err := t.replace(env, content...)
	if err != nil {
		return Result{}, err
	}
	n := len(match.Spans)
	return Result{
		Text: changeText(fmt.Sprintf("Edited %s (%s)", path, count(n, "replacement")),
			notes(match.MatchKind.Note(), note), diff),
		Structured: changeOutput{Path: path.String(), Replacements: n, Bytes: sizeOf(content)},
		Summary:    plusMinus(diff, complete),
	}, nil
}

// showPlace returns the error for an Edit of an unread file, with the lines around the only match of old_string. They
// count as read, so that the same call succeeds when it is repeated.
func (t *target) showPlace(env *Env, in editInput, unread error) error {
	if readVerdict(env.Policy, t.path).Action != guard.Allow {
		return unread
	}
	if kind, _ := document.Detect(t.content[:min(len(t.content), document.DetectBytes)],
		t.path.Real()); kind != document.TextFile {
		return unread
	}
	content := t.text(readstate.Status{})
	if content == nil {
		return unread
	}
	match, err := text.Find(content, in.OldString, in.NewString, false)
	if err != nil || len(match.Spans) != 1 {
		return unread
	}
	place, ok := content.Excerpt(match.Spans[0])
	if !ok {
		return unread
	}
	v := readstate.VersionOf(t.info)
	if content.Charset() != "utf-8" {
		v.Charset = content.Charset()
	}
	if len(t.content) <= wholeFile {
		v.Hash, v.Hashed = readstate.HashOf(t.content), true
	}
	part := readstate.Part{FirstLine: place.First, Lines: place.Last - place.First + 1, Start: place.Start}
	env.ReadState.MarkExcerptRead(t.path.Real(), v, part, place.Raw)
	return &UnreadError{fmt.Errorf("%s has not been read in this session. Nothing was changed; this is the only place of "+
		"old_string:\n%s"+
		"These lines now count as read: repeat the call if it is still right", t.path, place.Shown)}
}

// find returns the content as text, and the match of old_string.
func (t *target) find(standing readstate.Status, in editInput) (*text.Text, *text.Match, error) {
	if len(t.content) == 0 {
		return nil, nil, fmt.Errorf("%s was not changed: the file is empty. Use an empty old_string, or Write", t.path)
	}
	before := t.text(standing)
	if before == nil {
		return nil, nil, fmt.Errorf("%s is not text: Edit cannot change it", t.path)
	}
	match, err := text.Find(before, in.OldString, in.NewString, in.ReplaceAll)
	if err != nil {
		return nil, nil, fmt.Errorf("%s was not changed: %w", t.path, err)
	}
	return before, match, unseen(t.path, before, match, standing)
}

// unseen refuses to replace several matches if some were never shown. A single match need not have been shown: the
// caller knew its text.
func unseen(path guard.Path, t *text.Text, m *text.Match, standing readstate.Status) error {
	if standing.Whole || len(m.Spans) < 2 {
		return nil
	}
	s := t.String()
	line, from := 1, 0
	for _, span := range m.Spans {
		line += strings.Count(s[from:span.Start], "\n")
		from = span.Start
		last := line + strings.Count(s[span.Start:span.End], "\n")
		if !standing.Covers(line, last) {
			return &UnreadError{fmt.Errorf("%s was not changed: replace_all would also change line %d, which was not shown in "+
				"this session. Read it first (offset=%d)", path, line, line)}
		}
	}
	return nil
}

// lockWait limits the wait for other changes of the same file. Each takes milliseconds.
const lockWait = 30 * time.Second

// openTarget locks a file and reads it. With create, it creates missing parent directories.
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

// makeTries is how often the directories of a file are created. Another call that has created them may remove them
// when it fails.
const makeTries = 10

// openMaking is openTarget for a file with missing directories. It removes them if it fails.
func openMaking(ctx context.Context, env *Env, path guard.Path) (*target, error) {
	for tries := 1; ; tries++ {
		above := existing(path)
		unmake, err := path.MakeParents(0o777)
		if err != nil && env.Runtime.history.Fills(existing(path), err) && env.Runtime.history.Shrink() {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot create the directory of %s: %w%s", path, inFile(path, err),
				atomicfile.Advice(err))
		}
		t, err := lockTarget(ctx, env, path)
		if err == nil {
			t.undoMkdir, t.made = unmake, strings.Count(strings.TrimPrefix(filepath.Dir(path.Real()), above),
				string(filepath.Separator))
			return t, nil
		}
		unmake()
		again := errors.Is(err, errNoDir) || errors.Is(err, guard.ErrSwapped) // another call has removed or recreated it
		if !again || tries == makeTries {
			return nil, err
		}
	}
}

// existing returns the nearest existing directory above a file.
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

// errNoDir means that the directory of a file is missing, or was removed while lockTarget waited.
var errNoDir = errors.New("its directory is missing")

// lockTarget locks a file and reads it.
func lockTarget(ctx context.Context, env *Env, path guard.Path) (*target, error) {
	dir, base, err := path.OpenParent()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s was not changed: %w", path, errNoDir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the directory of %s: %w", path, inFile(path, err))
	}
	unlock, err := lockDir(ctx, &env.Runtime.locks, dir, filepath.Dir(path.String()))
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

// inPlace reports whether the locked directory is still the directory of the file.
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
func lockDir(ctx context.Context, locks *atomicfile.Locks, dir *os.Root, name string) (unlock func(), err error) {
	unlock, err = locks.Lock(ctx, dir, lockWait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("another program has locked %s for %v, such as with flock: end it (a background task with "+
			"TaskStop), then repeat the call", name, lockWait)
	}
	return unlock, err
}
