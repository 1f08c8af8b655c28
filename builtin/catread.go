package builtin

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolhost/toolhost/builtin/internal/shell"

	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/readstate"
)

// recordCat counts files as read that a plain `cat FILE…` has shown whole: what it printed must be what they hold now, and Read
// must be allowed to show them.
func recordCat(env *Env, command string, dir guard.Path, r *shell.Result) {
	names := catOperands(command)
	if len(names) == 0 || r.ExitCode != 0 || r.Cut || r.TimedOut || r.Cancelled {
		return
	}
	if most := env.ClientLimits.Of(false); most > 0 && utf8.RuneCountInString(r.Text) > most {
		return
	}
	var all []byte
	var seen []func()
	for _, name := range names {
		path, err := env.Policy.ResolveIn(dir, name)
		if err != nil || refuseSpecial(path) != nil || env.Policy.Judge(guard.Intent{Tool: Read.Name, Effects: []guard.Effect{guard.Read{Path: path}}}).Action != guard.Allow {
			return
		}
		var room bytes.Buffer
		info, ok, err := path.Content(&room, wholeFile)
		if content := room.Bytes(); err != nil || !ok || text.IsBinary(content) || !utf8.Valid(content) {
			return
		}
		v := readstate.VersionOf(info)
		v.Size = int64(room.Len())
		all = append(all, room.Bytes()...)
		seen = append(seen, func() { env.ReadState.MarkRead(path.Real(), v, room.Bytes()) })
	}
	if int64(len(all)) != r.Bytes || shell.CleanText(string(all)) != r.Text {
		return
	}
	for _, saw := range seen {
		saw()
	}
}

// catOperands are the files of a line that is a plain `cat FILE…` and nothing else, nil of any other.
func catOperands(command string) []string {
	if !strings.HasPrefix(strings.TrimLeft(command, " \t\n"), "cat ") {
		return nil
	}
	file, err := parseLine(command)
	if err != nil || len(file.Stmts) != 1 {
		return nil
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || stmt.Coprocess || len(stmt.Redirs) > 0 || len(call.Assigns) > 0 {
		return nil
	}
	var names []string
	for _, word := range call.Args[1:] {
		names = append(names, wordText(word))
		if slices.ContainsFunc(word.Parts, expands) {
			return nil
		}
	}
	if len(names) > 0 && names[0] == "--" {
		names = names[1:]
	}
	if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return name == "" || name[0] == '-' }) {
		return nil
	}
	return names
}

// expands reports whether bash may make something else of a part of a word than it says.
func expands(part syntax.WordPart) bool {
	lit, ok := part.(*syntax.Lit)
	return ok && strings.ContainsAny(lit.Value, "*?[{~")
}
