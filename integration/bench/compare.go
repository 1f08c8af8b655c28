package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// releases is the table of past commits: lines of a commit, a tab and what was measured then. compare without a commit
// takes those.
//
//go:embed releases.txt
var releases string

// pastReleases returns the commits of the table.
func pastReleases() (commits []string) {
	for line := range strings.Lines(releases) {
		if commit, _, ok := strings.Cut(line, "\t"); ok && !strings.HasPrefix(line, "#") {
			commits = append(commits, commit)
		}
	}
	return commits
}

// compareCommand measures this checkout next to other commits. It fails if something became slower, or bigger, than in
// the best of them by more than a bound, and that with confidence.
func compareCommand(args []string) error {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	bound := f.Float64("bound", 0.15, "by which share something may become slower or bigger")
	quick := f.Bool("quick", false, "measure less: only what became much slower is found")
	if err := f.Parse(args); err != nil {
		return err
	}
	c := comparison{
		rep: newReport(), commits: f.Args(), servers: effort{rounds: 400, least: 12, budget: 6 * time.Second},
		search: effort{rounds: 60, least: enough, budget: 6 * time.Second},
	}
	if len(c.commits) == 0 {
		c.commits = pastReleases()
	}
	if *quick {
		c.servers, c.search = effort{rounds: 60, least: enough, budget: time.Second}, effort{rounds: 10, least: 3,
			budget: time.Second}
	}
	err := scratch(c.measure)
	if err != nil {
		return err
	}
	return c.judge(*bound)
}

// A comparison is one of this checkout and other commits.
type comparison struct {
	rep             *report
	commits         []string
	servers, search effort
}

func (c *comparison) measure(dir string) error {
	top, err := checkout()
	if err != nil {
		return err
	}
	mine := filepath.Join(dir, "this")
	if err := build(top, mine); err != nil {
		return err
	}
	rivals := []*rival{host(ours, mine)}
	for _, commit := range c.commits {
		progress("building " + commit)
		other, binary := filepath.Join(dir, "checkout"), filepath.Join(dir, "toolhost-"+filepath.Base(commit))
		if err := errors.Join(export(top, commit, other), build(other, binary), os.RemoveAll(other)); err != nil {
			return err
		}
		rivals = append(rivals, host(commit, binary))
	}
	progress("starts")
	if err := measureStarts(c.rep, c.servers, rivals, dir); err != nil {
		return err
	}
	progress("files and commands")
	if err := measureWork(c.rep, c.servers, rivals, dir); err != nil {
		return err
	}
	progress("searches")
	small := filepath.Join(dir, "small")
	if err := makeTree(small, smallFiles); err != nil {
		return err
	}
	medium, err := goTree()
	if err != nil {
		return err
	}
	return errors.Join(c.searches(rivals, "small", small, dir), c.searches(rivals, "medium", medium, dir))
}

// export writes the files of a commit to a directory. No trace of it is left in the repository, whatever happens.
func export(top, commit, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	archive := exec.Command("git", "archive", "--format=tar", commit)
	archive.Dir, archive.Stderr = top, os.Stderr
	unpack := exec.Command("tar", "-x", "-C", to)
	unpack.Stderr = os.Stderr
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := unpack.Start(); err != nil {
		return err
	}
	if err := errors.Join(archive.Run(), unpack.Wait()); err != nil {
		return fmt.Errorf("exporting commit %s: %w", commit, err)
	}
	return nil
}

// searches measures the hosts on a tree, warm and just started.
func (c *comparison) searches(rivals []*rival, tree, root, dir string) error {
	var cold, paged, all []seeker
	for _, r := range rivals {
		s := &searcher{rep: c.rep, tree: tree, root: root, dir: dir, host: r}
		conn, err := s.open()
		if err != nil {
			return err
		}
		defer func() { _ = conn.stop() }()
		for range 2 {
			for _, q := range toCode() {
				if _, _, err := conn.call(q.ask(0)); err != nil {
					return err
				}
			}
			settle(conn.cmd.Process.Pid)
		}
		cold, paged, all = append(cold, s.cold(false)), append(paged, running(r.name, conn, aPage)), append(all,
			running(r.name, conn, 0))
	}
	return errors.Join(
		measureSearch(c.rep, c.search, searchRow(page, tree), toCode(), paged),
		measureSearch(c.rep, c.search, searchRow(full, tree), toCode(), all),
		measureSearch(c.rep, c.search, searchRow(plain, tree), withoutLiterals(), all),
		measureSearch(c.rep, c.search, searchRow(globs, tree), ofNames(), paged),
		measureSearch(c.rep, c.search, searchRow(first, tree), toCode()[:4], cold),
	)
}

// enough is in how many rounds a time has to be measured before it is judged: resamples of fewer say little of what
// could have been.
const enough = 8

// best returns the commit with the lowest median of a row.
func (c *comparison) best(w *row) string {
	return slices.MinFunc(c.commits, func(a, b string) int { return cmp.Compare(median(w.Values[a]), median(w.Values[b])) })
}

// judge prints the ratios to the best commit and says what became slower.
func (c *comparison) judge(bound float64) error {
	t := &table{head: slices.Concat([]string{"what"}, c.commits, []string{"this", "ratio to the best (95 %)", ""})}
	slower := 0
	for _, w := range c.rep.Rows {
		best := c.best(w)
		r := w.against(ours, best)
		say := ""
		switch {
		case w.Unit == "ms" && min(w.rounds(ours), w.rounds(best)) < enough:
			say = "too few rounds to tell"
		case r.Low > 1+bound:
			say = fmt.Sprintf("slower by more than %.0f %%", bound*100)
			if w.Unit == "MB" {
				say = fmt.Sprintf("bigger by more than %.0f %%", bound*100)
			}
			slower++
		case r.High < 1/(1+bound):
			say = "better"
		}
		cells := []string{w.Name}
		for _, name := range append(slices.Clone(c.commits), ours) {
			cells = append(cells, fmt.Sprintf("%.3g %s", median(w.Values[name]), w.Unit))
		}
		t.add(append(cells, fmt.Sprintf("%.3f (%.3f–%.3f)", r.Value, r.Low, r.High), say)...)
	}
	if err := t.print(os.Stdout); err != nil {
		return err
	}
	for _, n := range c.rep.Notes {
		fmt.Println("-", n)
	}
	if slower > 0 {
		return fmt.Errorf("%d of %d figures became worse by more than %.0f %%", slower, len(c.rep.Rows), bound*100)
	}
	return nil
}
