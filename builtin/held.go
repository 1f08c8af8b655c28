package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settle"
)

// A HeldFile is a protected file that a command has changed.
type HeldFile struct {
	Path, State string // State is new, changed or removed
	Former, Now string // the lines that differ; "" if the file is absent, or no text
}

// heldWait is how long the result of a command waits for the answer to a question about protected files.
const heldWait = time.Minute

// heldFiles returns what a question shows of held files.
func heldFiles(files []settle.File) (list []HeldFile) {
	for _, f := range files {
		h := HeldFile{Path: f.Path, State: f.State}
		h.Former, h.Now = f.Differing()
		list = append(list, h)
	}
	return list
}

// askHeld asks whether the protected files that the command has changed stay, and returns the result of its call.
func (b *bashRun) askHeld(ctx context.Context, result Result) Result {
	if b.where.settling == nil || b.env.AskHeld == nil {
		return result
	}
	files := b.where.settling.Fresh()
	if len(files) == 0 {
		return result
	}
	asked := ExecQuestion{Held: heldFiles(files), Dir: b.dir.Real()}
	finish := func(answer ExecAnswer) Result {
		note, kept := b.answerHeld(files, answer)
		if kept {
			result.Text = strings.Replace(result.Text, settle.KeepRemedy, "", 1)
		}
		if note != "" {
			result.Text += onLines([]string{note})
		}
		return result
	}
	if b.env.AsksLater {
		shown := result
		resume := func(_ context.Context, a ExecAnswer) (Result, error) { return finish(a), nil }
		shown.Asks = &ExecAsked{Question: asked, Resume: resume}
		return shown
	}
	ctx, cancel := context.WithTimeout(ctx, heldWait)
	defer cancel()
	return finish(b.env.AskHeld(ctx, asked))
}

// answerHeld carries out a person's answer. It returns a note, and whether all files were kept.
func (b *bashRun) answerHeld(files []settle.File, answer ExecAnswer) (note string, allKept bool) {
	switch {
	case !answer.Allowed && answer.By == "": // no person has answered
		return "", false
	case !answer.Allowed:
		return "They stay held: " + answer.Reason + ".", false
	}
	keeper := b.env.Runtime.baseline.Settle()
	var kept []string
	for _, f := range files {
		done, err := keeper.Keep(f.Dir, f.Path)
		if err != nil {
			return "A person kept protected files, but not all could be: " + err.Error() + ".", false
		}
		kept = append(kept, done...)
	}
	return "A person kept the changes of these protected files: " + strings.Join(kept, ", ") + ".", true
}

// seesHeld lets a tool work on the files that commands see: held files are in place while the tool plans and while it
// runs, but not while a person is asked. The content that the tool writes with a person's consent counts as approved.
func seesHeld(ctx context.Context, env *Env, plan func(context.Context, *Env) (Plan, error)) (Plan, error) {
	leave, err := env.enterHeld()
	if err != nil {
		return Plan{}, err
	}
	p, err := plan(ctx, env)
	leave()
	run := p.Run
	if err != nil || run == nil || env.Runtime == nil {
		return p, err
	}
	p.Run = func(ctx context.Context) (Result, error) {
		leave, err := env.enterHeld()
		if err != nil {
			return Result{}, err
		}
		defer leave()
		result, err := run(ctx)
		for _, e := range p.Intent.Effects {
			w, ok := e.(guard.Write)
			if !ok || err != nil {
				continue
			}
			if err := env.Runtime.baseline.Settle().Know(w.Path.Real()); err != nil {
				env.Runtime.log.Warn("cannot record that a person agreed to a protected file",
					"file", w.Path.String(), "error", err)
			}
		}
		return result, err
	}
	return p, nil
}

// enterHeld puts the held files of the roots in place, if there are any. leave restores the former files.
func (e *Env) enterHeld() (leave func(), err error) {
	if e.Runtime == nil || e.Policy == nil {
		return func() {}, nil
	}
	keeper := e.Runtime.baseline.Settle()
	dirs := keeper.Holding(e.Policy.Roots())
	if len(dirs) == 0 {
		return func() {}, nil
	}
	c, notes, err := keeper.Begin(dirs, e.Policy.Commands().KeepsChanges())
	if err != nil {
		return nil, fmt.Errorf("the files that are held cannot be looked at: %w", err)
	}
	return func() {
		for _, note := range append(notes, c.End()...) {
			e.Runtime.log.Debug(note)
		}
	}, nil
}
