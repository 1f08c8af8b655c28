package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// base is the other commit's name in tables.
const base = "base"

// compareCommand measures this checkout next to another commit. It fails if something became slower, or bigger, by
// more than a bound, and that with confidence.
func compareCommand(args []string) error {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	bound := f.Float64("bound", 0.1, "by which share something may become slower or bigger")
	quick := f.Bool("quick", false, "measure less: only what became much slower is found")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("compare takes one commit, after the flags")
	}
	c := comparison{
		rep: newReport(), servers: effort{rounds: 400, least: 12, budget: 6 * time.Second},
		search: effort{rounds: 60, least: enough, budget: 6 * time.Second},
	}
	if *quick {
		c.servers, c.search = effort{rounds: 60, least: enough, budget: time.Second}, effort{rounds: 10, least: 3,
			budget: time.Second}
	}
	err := scratch(func(dir string) error { return c.measure(f.Arg(0), dir) })
	if err != nil {
		return err
	}
	return c.judge(*bound)
}

// A comparison is one of this checkout and another commit.
type comparison struct {
	rep             *report
	servers, search effort
}

func (c *comparison) measure(commit, dir string) error {
	top, err := checkout()
	if err != nil {
		return err
	}
	other := filepath.Join(dir, "checkout")
	if err := export(top, commit, other); err != nil {
		return err
	}
	mine, theirs := filepath.Join(dir, "this"), filepath.Join(dir, "that")
	if err := errors.Join(build(top, mine), build(other, theirs)); err != nil {
		return err
	}
	rivals := []*rival{host(ours, mine), host(base, theirs)}
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

// searches measures both hosts on a tree, warm and just started.
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

// judge prints the ratios and says what became slower.
func (c *comparison) judge(bound float64) error {
	t := &table{head: []string{"what", "base", "this", "ratio (95 %)", ""}}
	slower := 0
	for _, w := range c.rep.Rows {
		r := w.against(ours, base)
		say := ""
		switch {
		case w.Unit == "ms" && min(w.rounds(ours), w.rounds(base)) < enough:
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
		t.add(w.Name, fmt.Sprintf("%.3g %s", median(w.Values[base]), w.Unit),
			fmt.Sprintf("%.3g %s", median(w.Values[ours]), w.Unit),
			fmt.Sprintf("%.3f (%.3f–%.3f)", r.Value, r.Low, r.High), say)
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
