package command

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// MaxLength is the length in bytes above which a text is not analyzed. Files that agents write through heredocs
	// stay under it.
	MaxLength = 64 << 10

	// maxDepth bounds texts within texts (bash -c "bash -c …") and wrappers
	// within wrappers.
	maxDepth = 16

	// maxBrackets bounds how deep brackets of any kind may nest. The parser looks
	// ahead and back at some of them: 2,500 times "((" takes it seconds. Programs
	// written through a heredoc stay under 20.
	maxBrackets = 100

	// maxCommands bounds the commands of one text, so that matching every rule of a file against every command stays a
	// bounded amount of work.
	maxCommands = 1000

	// maxHeredocs bounds the heredocs with expansions, each of which is compared with all lines of the text.
	maxHeredocs = 50

	// maxReasons bounds the reasons that are given for one text.
	maxReasons = 100
)

// failed is the reason that is given after a panic.
const failed = "the analysis of the command failed"

// Analyze finds every simple command that text may run. It never fails: what
// cannot be decided is listed in the result.
func Analyze(text string) (out *Analysis) {
	return analyze(func(w *walker) { w.script(text) })
}

// AnalyzeWords is Analyze for a program that is started with these words, of which there is at least one.
func AnalyzeWords(words []string) *Analysis {
	args := make([]Word, len(words))
	for i, word := range words {
		args[i] = fixed(word)
	}
	return analyze(func(w *walker) { w.simple(Simple{Args: args, Outer: -1}, nil) })
}

func analyze(walk func(*walker)) (out *Analysis) {
	out = &Analysis{}
	w := &walker{out: out, outer: -1, current: -1}
	// A guard that panics on hostile text must not take the server along, nor let
	// the text pass.
	defer func() {
		if r := recover(); r != nil {
			out.Hiding, out.Partial = true, true
			out.Undecidable = append(out.Undecidable, failed)
		}
	}()
	walk(w)
	downloads := func(c Simple) bool { return oneOf(c.Name, "curl wget fetch aria2c http https xh") }
	out.Downloaded = out.foreign && slices.ContainsFunc(out.Commands, downloads)
	return out
}

// A walker analyses one text; texts within it get a walker of their own that
// adds to the same Analysis.
type walker struct {
	out     *Analysis
	text    string
	outer   int // index of the command that runs text, or -1
	current int // index of the command being examined, or -1
	depth   int
	posix   bool            // the text is for sh, which may be bash, dash or another
	funcs   map[string]bool // functions of the text; true: surely defined by now

	leads   []uint // where the changes of directory in the Lead end
	to      uint   // where the part of the text ends that is led by them; 0: it does not begin with one
	mayLink bool   // a command of that part may make links, so that no later change of directory is known
	led     int    // what ledBy says of the whole text

	heredocs int // how many were read
}

// undecided records a reason. hiding tells whether a program may run whose name
// is not listed.
func (w *walker) undecided(hiding bool, reason string) {
	w.out.Hiding = w.out.Hiding || hiding
	if len(w.out.Undecidable) >= maxReasons && !slices.Contains(w.out.Undecidable, reason) {
		reason = moreReasons
	}
	w.out.Undecidable = appendNew(w.out.Undecidable, reason)
	if w.current >= 0 {
		c := &w.out.Commands[w.current]
		c.Undecidable = appendNew(c.Undecidable, reason)
	}
}

// startsByPurpose records what the program of the current command is made for: running text, a file or a program.
func (w *walker) startsByPurpose(hiding bool, reason string) {
	w.undecided(hiding, reason)
	c := &w.out.Commands[w.current]
	c.purpose = appendNew(c.purpose, reason)
}

// unread records why a part of the text was not examined.
func (w *walker) unread(reason string) {
	w.undecided(true, reason)
	w.out.Partial = true
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// script analyses text, which becomes w.text.
func (w *walker) script(text string) {
	w.text = text
	w.out.arrays = w.out.arrays || makesArrays().MatchString(text)
	if reason := unreadable(text); reason != "" {
		w.unread(reason)
		if w.depth == 0 {
			w.out.err = errors.New(reason)
		}
		return
	}
	stmts, err := parse(text)
	if w.depth == 0 {
		w.out.statements, w.out.err = stmts, err
	}
	if err != nil {
		w.unread("the command cannot be parsed: " + err.Error())
	}
	if w.posix && bashOnly().MatchString(text) {
		w.undecided(true, "the text means different things to different sh")
	}
	w.collect(stmts)
	if w.depth == 0 {
		w.lead(stmts)
	}
	for _, stmt := range stmts {
		syntax.Walk(stmt, w.visit)
		f, ok := stmt.Cmd.(*syntax.FuncDecl)
		if ok && f.Name != nil && !stmt.Background && !stmt.Negated && len(stmt.Redirs) == 0 {
			w.funcs[f.Name.Value] = true
		}
	}
}

// collect records what matters wherever it is in the text: functions, since a call may stand before the definition,
// the values of variables, and what bash and the parser (3.14) may read differently. It does not tell harmless cases
// of such differences from the others: all are undecided.
func (w *walker) collect(stmts []*syntax.Stmt) {
	each(stmts, func(n syntax.Node) {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			w.function(n)
		case *syntax.Assign:
			if n.Name != nil && n.Value != nil {
				w.assigned(n.Value)
			}
		case *syntax.WordIter:
			for _, item := range n.Items {
				w.assigned(item)
			}
		}
		if n != nil && w.misparsed(n) {
			w.undecided(true, misread)
		}
	})
}

// each calls f for every node of the statements.
func each(stmts []*syntax.Stmt, f func(syntax.Node)) {
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			f(n)
			return true
		})
	}
}

func (w *walker) function(f *syntax.FuncDecl) {
	if f.Name == nil {
		w.undecided(true, "a function without a name, which bash does not know")
		return
	}
	name := f.Name.Value
	if w.funcs == nil {
		w.funcs = make(map[string]bool)
	}
	w.funcs[name] = false
	if Known(name) {
		w.undecided(true, "a function takes the name of "+name)
	}
}

func (w *walker) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		w.stmt(n)
	case *syntax.DeclClause:
		readDeclaration(w, n)
	case *syntax.WordIter:
		w.setsVariable(n.Name.Value, "$")
	case *syntax.CoprocClause:
		return n.Name == nil
	}
	if n != nil && w.evaluates(n) {
		w.undecided(true, evaluated)
	}
	return true
}

// lead notes the changes of directory that a list begins with, and where the commands stand that run only after them:
// in "cd a && b && cd c || exit 1; d" b runs in a, and d in a/c.
func (w *walker) lead(list []*syntax.Stmt) {
	for _, s := range list {
		before := len(w.leads)
		led := w.follows(s)
		or, ok := s.Cmd.(*syntax.BinaryCmd)
		if w.to == 0 || len(w.leads) > before && !(led && ok && or.Op == syntax.OrStmt) {
			return
		}
		w.to = s.End().Offset()
	}
}

// follows is lead for one statement. It reports whether what comes after its success is led too.
func (w *walker) follows(s *syntax.Stmt) (led bool) {
	plain := !s.Negated && !s.Background && len(s.Redirs) == 0
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		switch {
		case c.Op != syntax.AndStmt && c.Op != syntax.OrStmt:
		case !w.follows(c.X) || c.Op == syntax.OrStmt && !exits().MatchString(w.source(c.Y)):
			return false
		case c.Op == syntax.AndStmt:
			return w.follows(c.Y) && !s.Background
		default:
			return !s.Background
		}
	case *syntax.Block:
		if w.to == 0 {
			return plain && len(c.Stmts) == 1 && w.follows(c.Stmts[0])
		}
	case *syntax.Subshell:
		if w.to == 0 {
			w.lead(c.Stmts)
			return false
		}
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	cd := ok && plain && len(call.Assigns) == 0 && len(call.Args) == 2 && call.Args[0].Lit() == "cd" &&
		!strings.HasPrefix(call.Args[1].Lit(), "-")
	if w.to == 0 && !cd {
		return false
	}
	w.to = s.End().Offset()
	if cd && !w.mayLink {
		w.out.Lead, w.leads = append(w.out.Lead, w.words(call.Args[1:])...), append(w.leads, w.to)
		return true
	}
	if w.mayLink = w.mayLink || !ok || len(call.Args) == 0; !w.mayLink {
		of := Simple{Args: w.words(call.Args)}
		w.mayLink = of.Dynamic() || !oneOf(call.Args[0].Lit(), "mkdir ls pwd echo printf true cat grep head tail wc")
	}
	return true
}

// exits matches a statement that ends the shell. With two codes bash goes on.
var exits = regular(`^exit( +\d+)?;?$`)

// ledBy returns one more than the changes of directory of the Lead that precede a statement of its list, and 0 for any
// other.
func (w *walker) ledBy(s *syntax.Stmt) int {
	at := s.Pos().Offset()
	if at >= w.to {
		return w.led
	}
	return 1 + len(slices.DeleteFunc(slices.Clone(w.leads), func(end uint) bool { return end > at }))
}

// stmt examines the redirections of a statement and its command, if that is a simple one. Nested statements are
// visited on their own.
func (w *walker) stmt(s *syntax.Stmt) {
	w.current = -1
	for _, r := range s.Redirs {
		w.redirect(r, w.ledBy(s))
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	if len(call.Args) == 0 {
		for _, a := range call.Assigns {
			w.setsVariable(a.Name.Value, assignedValue(w, a))
		}
		return
	}
	c := Simple{Args: w.words(call.Args), Outer: w.outer, Source: sourceOf(w, call), Led: w.ledBy(s)}
	if len(c.Args) == 0 {
		return
	}
	w.simple(c, s.Redirs)
	for _, a := range call.Assigns {
		// `IFS= read -r line` changes nothing but how read splits its line.
		if a.Name.Value != "IFS" || c.Args[0].Text != "read" {
			w.setsVariable(a.Name.Value, assignedValue(w, a))
		}
	}
	w.current = -1
}

// sourceOf joins the words of a call as they were written.
func sourceOf(w *walker, call *syntax.CallExpr) string {
	var parts []string
	for _, a := range call.Assigns {
		parts = append(parts, w.source(a))
	}
	for _, a := range call.Args {
		parts = append(parts, w.source(a))
	}
	return strings.Join(parts, " ")
}

// simple adds one command and looks at what it runs in turn. stdin holds the
// redirections of its statement, for shells that read their script there.
func (w *walker) simple(c Simple, stdin []*syntax.Redirect) {
	if w.depth > maxDepth || len(w.out.Commands) >= maxCommands {
		w.unread("too many commands, or nested too deep")
		return
	}
	c.Text = join(c.Args)
	if c.Source == "" {
		c.Source = c.Text
	}
	name := c.Args[0]
	if name.Static && name.Text != "" {
		c.Name = path.Base(name.Text)
	}
	c.spell()
	w.out.Commands = append(w.out.Commands, c)
	w.current = len(w.out.Commands) - 1
	switch {
	case !name.Static:
		w.undecided(true, unknownProgram+name.Text)
	case name.Text == "" || name.Text[0] == '-' || strings.ContainsAny(name.Text, " \t\n"):
		// `time -- rm x` runs rm: bash takes "--" for a part of time, the parser for the name of the program.
		w.undecided(true, "the name of the program is empty, an option, or holds white space")
	case assigns(name.Text):
		// `coproc x=[[ rm y` runs rm.
		w.undecided(true, "the name of the program looks like an assignment")
	default:
		w.special(stdin)
	}
}

func assigns(name string) bool {
	before, _, ok := strings.Cut(name, "=")
	return ok && syntax.ValidName(strings.TrimSuffix(before, "+"))
}

func join(words []Word) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = word.Text
	}
	return strings.Join(texts, " ")
}
