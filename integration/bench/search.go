package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/integration/client"
)

// The programs that search, and the kinds of search, as rows name them.
const (
	ripgrep = "ripgrep"
	ugrep   = "ugrep"
	fd      = "fd"

	first = "first Grep" // right after the handshake
	later = "first Grep of a host at rest"
	page  = "Grep, one page"
	full  = "Grep, all lines"
	plain = "Grep without literals"
	globs = "Glob"
)

func searchRow(kind, tree string) string { return kind + ", " + tree + " tree" }

// aPage is the host's default for how many entries one answer shows.
const aPage = 250

// A seeker is a program that answers queries about a tree.
type seeker struct {
	name string
	able func(q query) bool
	seek func(q query) (time.Duration, error)
}

// program is a seeker that is started for every query, as an agent would start it. What it prints is read to the end.
func program(name, path, tree string, words func(q query) []string) seeker {
	return seeker{
		name: name, able: func(q query) bool { return words(q) != nil },
		seek: func(q query) (time.Duration, error) {
			begun := time.Now()
			_, err := run(path, tree, words(q), slow)
			return time.Since(begun), err
		},
	}
}

// slow is how long a program may take for a query that is timed. One of them needs minutes for some.
const slow = 10 * time.Second

var errSlow = fmt.Errorf("it took more than %v", slow)

// run runs a program that searches, for so long at most, and returns what it prints. Exit code 1 says that nothing
// was found.
func run(path, tree string, args []string, most time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), most, errSlow)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = tree
	out, err := cmd.Output()
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	exit := &exec.ExitError{}
	if errors.As(err, &exit) && (exit.ExitCode() == 1 || exit.ExitCode() == 2 && len(exit.Stderr) == 0) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %.300s", filepath.Base(path), err, exit.Stderr)
	}
	return out, nil
}

// A searcher measures searches of one tree.
type searcher struct {
	rep      *report
	e        effort
	rg       string // the reference
	tree     string // its name in rows
	root     string
	dir      string // for homes and states
	host     *rival
	programs []seeker
}

// newSearcher returns nil where there is nothing to compare with.
func newSearcher(rep *report, e effort, found *places, binary, tree, root, dir string) *searcher {
	s := &searcher{rep: rep, e: e, tree: tree, root: root, dir: dir, host: host(ours, binary)}
	s.rg = found.find("rg")
	if s.rg == "" {
		return nil
	}
	s.programs = append(s.programs, program(ripgrep, s.rg, root, func(q query) []string { return q.rg(false) }))
	if path := found.find("ugrep"); path != "" {
		s.programs = append(s.programs, program(ugrep, path, root, query.ug))
	}
	if path := found.find("fd", "fdfind"); path != "" {
		s.programs = append(s.programs, program(fd, path, root, query.fd))
	}
	return s
}

// open starts the host on the tree, with a new home.
func (s *searcher) open() (conn *server, err error) {
	home, err := os.MkdirTemp(s.dir, "search-*")
	if err != nil {
		return nil, err
	}
	conn, _, err = start(s.host.command(s.root, home))
	return conn, err
}

// all measures every kind of search of the tree.
func (s *searcher) all(code []query) error {
	conn, err := s.open()
	if err != nil {
		return err
	}
	if err := errors.Join(s.warm(conn, code), conn.stop()); err != nil {
		return err
	}
	// A round of these takes seconds, of which few are measured: they make do with fewer.
	for _, k := range []struct {
		name    string
		queries []query
		cold    seeker
	}{{first, code[:3], s.cold(false)}, {later, code[:1], s.cold(true)}} {
		if err := measureSearch(s.rep, s.e, searchRow(k.name, s.tree), k.queries,
			append([]seeker{k.cold}, s.programs...)); err != nil {
			return err
		}
	}
	return nil
}

// warm measures searches of a host that runs.
func (s *searcher) warm(conn *server, code []query) error {
	everything := append(append(append([]query{}, code...), withoutLiterals()...), ofNames()...)
	for _, q := range everything { // this warms it too
		if err := s.verify(conn, q); err != nil {
			return fmt.Errorf("%s tree: %s: %w", s.tree, q, err)
		}
	}
	settle(conn.cmd.Process.Pid)
	for _, k := range []struct {
		name    string
		queries []query
		limit   int
	}{{page, code, aPage}, {full, code, 0}, {plain, withoutLiterals(), 0}, {globs, ofNames(), 0}} {
		seekers := append([]seeker{running(ours, conn, k.limit)}, s.programs...)
		if err := measureSearch(s.rep, s.e, searchRow(k.name, s.tree), k.queries, seekers); err != nil {
			return err
		}
	}
	s.rep.row("memory with an index, "+s.tree+" tree", "MB").add(ours, megabytes(memory(conn.cmd.Process.Pid)))
	return nil
}

// running is a host that runs and has seen the tree before.
func running(name string, conn *server, limit int) seeker {
	answers := map[string]string{} // what each query was answered first
	return seeker{
		name: name, able: func(query) bool { return true },
		seek: func(q query) (time.Duration, error) {
			r, took, err := conn.call(q.ask(limit))
			if err != nil {
				return 0, err
			}
			before, asked := answers[q.String()]
			if answers[q.String()] = string(r.Structured); asked && before != string(r.Structured) {
				return 0, fmt.Errorf("the counts %s became %s", before, r.Structured)
			}
			return took, nil
		},
	}
}

// cold is a host that was just started and has never searched. Its start does not count: an agent's host runs
// already. It is asked after the handshake, or when it has come to rest, as it does while an agent thinks of its
// first question.
func (s *searcher) cold(rested bool) seeker {
	return seeker{
		name: s.host.name, able: func(query) bool { return true },
		seek: func(q query) (time.Duration, error) {
			conn, err := s.open()
			if err != nil {
				return 0, err
			}
			if rested {
				settle(conn.cmd.Process.Pid)
			}
			_, took, err := conn.call(q.ask(aPage))
			return took, errors.Join(err, conn.stop())
		},
	}
}

// measureSearch puts every query to all that can answer it, by turns, and adds a row.
func measureSearch(rep *report, e effort, name string, queries []query, seekers []seeker) error {
	w := rep.row(name, "ms")
	budget := e.budget / time.Duration(len(queries))
	for _, q := range queries {
		one := newRow(q.String(), "ms")
		w.Queries = append(w.Queries, one)
		begun := time.Now()
		gone := map[string]bool{}
		for round := range e.rounds + 1 {
			if round > e.least && time.Since(begun) > budget {
				break
			}
			for i := range seekers {
				k := seekers[(i+round)%len(seekers)]
				if gone[k.name] || !k.able(q) {
					continue
				}
				took, err := k.seek(q)
				if errors.Is(err, errSlow) && k.name != ours {
					gone[k.name] = true
					one.drop(k.name)
					rep.note("%s was left out of %s for %s: %v", k.name, name, q, err)
					continue
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %s: %w", name, k.name, q, err)
				}
				if round > 0 {
					one.add(k.name, milliseconds(took))
				}
			}
		}
	}
	w.summarize()
	return nil
}

// verify holds that the host's answer to a query is ripgrep's: all of it, and its first page.
func (s *searcher) verify(conn *server, q query) error {
	out, err := run(s.rg, s.root, q.rg(true), patience)
	if err != nil {
		return err
	}
	want := q.normal(string(out))
	r, _, err := conn.call(q.ask(0))
	if err != nil {
		return err
	}
	if q.names {
		return checkNames(want, q.normal(r.Text()), r.Structured)
	}
	text, err := whole(r)
	if err != nil {
		return err
	}
	if d := difference(want, q.normal(text)); d != "" {
		return fmt.Errorf("the answer is not ripgrep's: %s", d)
	}
	r, _, err = conn.call(q.ask(aPage))
	if err != nil {
		return err
	}
	if q.mode == files {
		return nil // newest first: the page is another order's
	}
	return checkPage(q, out, r)
}

// checkPage holds that a page is the first of what ripgrep prints in order.
func checkPage(q query, all []byte, r *client.Result) error {
	var shown struct{ Shown int }
	if err := json.Unmarshal(r.Structured, &shown); err != nil {
		return err
	}
	lines := bytes.SplitAfter(all, []byte("\n"))
	lines = lines[:min(shown.Shown, len(lines))]
	if d := difference(q.normal(string(bytes.Join(lines, nil))), q.normal(r.Text())); d != "" && !q.multiline &&
		len(r.Content) == 1 {
		return fmt.Errorf("the page is not the first of ripgrep's: %s", d)
	}
	return nil
}

// checkNames holds that the newest files, which are shown, are among those that match, and their number is right.
func checkNames(want, got []string, structured []byte) error {
	var counts struct{ Total int }
	if err := json.Unmarshal(structured, &counts); err != nil {
		return err
	}
	if counts.Total != len(want) {
		return fmt.Errorf("%d files and not %d", counts.Total, len(want))
	}
	known := map[string]bool{}
	for _, name := range want {
		known[name] = true
	}
	for _, name := range got {
		if !known[name] {
			return fmt.Errorf("%q is not among ripgrep's", name)
		}
	}
	return nil
}

// whole is the text of a result, from the file in which it is kept if it was cut: the text says how to read that.
func whole(r *client.Result) (string, error) {
	_, next, cut := strings.Cut(r.Text(), " are left out here. The whole is kept in ")
	if !cut {
		return strings.TrimSpace(r.Text()), nil
	}
	var read struct {
		Path string `json:"file_path"`
	}
	_, next, _ = strings.Cut(next, " Next part: Read ")
	if err := json.NewDecoder(strings.NewReader(next)).Decode(&read); err != nil {
		return "", fmt.Errorf("where the whole is kept cannot be read: %w", err)
	}
	raw, err := os.ReadFile(read.Path)
	return string(raw), err
}
