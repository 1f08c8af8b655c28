package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A curve is what something costs against a size.
type curve struct {
	of    string // what the size is of
	unit  string // of the size
	sizes []float64
	costs []cost // in the order of their first point
}

// A cost is one line of a curve.
type cost struct {
	name, unit string
	values     []float64
}

func (c *curve) add(name, unit string, value float64) {
	for i := range c.costs {
		if c.costs[i].name == name {
			c.costs[i].values = append(c.costs[i].values, value)
			return
		}
	}
	c.costs = append(c.costs, cost{name, unit, []float64{value}})
}

// scaleCommand measures how cost grows, and prints it with its exponents.
func scaleCommand(args []string) error {
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	whole := f.Bool("full", false, "go on to 1,000,000 files (4 GB of disk) and files of 1 GB")
	binary := f.String("binary", "", "measure this `file` and do not build the host")
	only := f.String("only", "", "measure one `curve`: trees, files, rules or sessions")
	if err := f.Parse(args); err != nil {
		return err
	}
	rep := newReport()
	fmt.Printf("%s, commit %s, %s\n", rep.Date, rep.Commit, rep.Machine)
	return scratch(func(dir string) error {
		built, err := (&peersRun{binary: *binary}).built(dir)
		if err != nil {
			return err
		}
		s := &scale{host: host(ours, built), dir: dir, full: *whole}
		for _, each := range []struct {
			name    string
			measure func() (*curve, error)
		}{{"trees", s.trees}, {"files", s.files}, {"rules", s.rules}, {"sessions", s.sessions}} {
			if *only != "" && *only != each.name {
				continue
			}
			progress(each.name)
			c, err := each.measure()
			if err != nil {
				return err
			}
			c.show()
		}
		return nil
	})
}

// A scale measures curves.
type scale struct {
	host *rival
	dir  string
	full bool
}

// decades are the powers of ten from one number to another.
func decades(from, to float64) []float64 {
	var all []float64
	for n := from; n <= to; n *= 10 {
		all = append(all, n)
	}
	return all
}

// often is how many times each point is measured; the median counts.
const often = 15

// timed is the median time of a call, in milliseconds.
func timed(conn *server, c func(i int) call) (float64, error) {
	var all []float64
	for i := range often {
		_, took, err := conn.call(c(i))
		if err != nil {
			return 0, err
		}
		all = append(all, milliseconds(took))
	}
	return median(all), nil
}

// home is a new home directory for a host.
func (s *scale) home() (string, error) { return os.MkdirTemp(s.dir, "home-*") }

// trees measures searches of trees of ever more files.
func (s *scale) trees() (*curve, error) {
	c := &curve{of: "files in the tree"}
	most := 1e5
	if s.full {
		most = 1e6
	}
	root := filepath.Join(s.dir, "tree")
	made := 0
	for _, n := range decades(1e3, most) {
		for ; made < int(n); made++ {
			text := fmt.Sprintf("package p%d\n\nfunc f%d(a int) error {\n\treturn errors.New(\"word%d\")\n}\n", made,
				made, made%977)
			if err := put(filepath.Join(root, fmt.Sprintf("d%03d/e%02d/f%06d.go", made/4000, made/100%40, made)),
				text); err != nil {
				return nil, err
			}
		}
		if err := s.tree(c, root); err != nil {
			return nil, err
		}
		c.sizes = append(c.sizes, n)
	}
	return c, os.RemoveAll(root)
}

func (s *scale) tree(c *curve, root string) error {
	home, err := s.home()
	if err != nil {
		return err
	}
	conn, _, err := start(s.host.command(root, home))
	if err != nil {
		return err
	}
	defer func() { _ = conn.stop() }()
	page := query{pattern: "return", mode: content}.ask(aPage)
	_, took, err := conn.call(page)
	if err != nil {
		return err
	}
	c.add("first Grep", "ms", milliseconds(took))
	for range 2 {
		if _, _, err := conn.call(query{pattern: "nosuchthing", mode: content}.ask(0)); err != nil {
			return err
		}
		settle(conn.cmd.Process.Pid)
	}
	return c.rest(conn, []named{
		{"Grep, one page", page}, {"Grep, no match", query{pattern: "nosuchthing", mode: content}.ask(0)},
		{"Grep, all files", query{pattern: "return", mode: count}.ask(0)}, {"Glob", query{pattern: "**/*7.go", names: true}.ask(0)},
	})
}

// A named is a call and its line in a curve.
type named struct {
	name string
	call call
}

// rest adds what calls cost, and the memory of the host behind them.
func (c *curve) rest(conn *server, calls []named) error {
	for _, n := range calls {
		took, err := timed(conn, func(int) call { return n.call })
		if err != nil {
			return err
		}
		c.add(n.name, "ms", took)
	}
	c.add("memory", "MB", megabytes(memory(conn.cmd.Process.Pid)))
	return nil
}

// files measures Read and Edit of ever longer files.
func (s *scale) files() (*curve, error) {
	c := &curve{of: "size of the file", unit: "B"}
	most := 1e8
	if s.full {
		most = 1e9
	}
	for _, n := range decades(1e3, most) {
		root := filepath.Join(s.dir, "files")
		path := filepath.Join(root, "long.txt")
		if err := putLong(path, int(n)); err != nil {
			return nil, err
		}
		if err := s.file(c, root, path, int(n)/lineLength); err != nil {
			return nil, fmt.Errorf("a file of %.0g bytes: %w", n, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		c.sizes = append(c.sizes, n)
	}
	return c, nil
}

// lineLength is that of every line of a long file, in bytes.
const lineLength = 80

func putLong(path string, size int) error {
	if err := put(path, "version 0\n"); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	line := strings.Repeat("words ", lineLength)[:lineLength-1] + "\n"
	block := []byte(strings.Repeat(line, 1<<12))
	for left := size; left > 0 && err == nil; left -= len(block) {
		_, err = f.Write(block[:min(left/lineLength*lineLength, len(block))])
	}
	return errors.Join(err, f.Close())
}

func (s *scale) file(c *curve, root, path string, lines int) error {
	home, err := s.home()
	if err != nil {
		return err
	}
	conn, _, err := start(s.host.command(root, home))
	if err != nil {
		return err
	}
	defer func() { _ = conn.stop() }()
	for _, at := range []struct {
		name string
		line int
	}{{"Read of the first 200 lines", 1}, {"Read from the middle", max(1, lines/2)}} {
		took, err := timed(conn, func(int) call {
			return call{"Read", map[string]any{"file_path": path, "offset": at.line, "limit": workLines}}
		})
		if err != nil {
			return err
		}
		c.add(at.name, "ms", took)
	}
	version := 0
	took, err := timed(conn, func(int) call {
		version++
		return edit(path, fmt.Sprintf("version %d\n", version-1), fmt.Sprintf("version %d\n", version))
	})
	if err != nil {
		return err
	}
	c.add("Edit of the first line", "ms", took)
	c.add("most memory", "MB", megabytes(size(conn.cmd.Process.Pid, "status", "VmHWM:")))
	return nil
}

// rules measures calls under ever more rules.
func (s *scale) rules() (*curve, error) {
	c := &curve{of: "deny rules"}
	root := filepath.Join(s.dir, "ruled")
	if err := makeTree(root, smallFiles); err != nil {
		return nil, err
	}
	for _, n := range decades(10, 1e4) {
		all := make([]string, int(n))
		for i := range all {
			all[i] = fmt.Sprintf(`"Read(secret%d/**)"`, i)
			if i%2 == 1 {
				all[i] = fmt.Sprintf(`"Bash(forbidden%d:*)"`, i)
			}
		}
		settings := filepath.Join(s.dir, fmt.Sprintf("rules-%.0f.json", n))
		if err := put(settings, `{"permissions":{"deny":[`+strings.Join(all, ",")+`]}}`); err != nil {
			return nil, err
		}
		if err := s.ruled(c, root, settings); err != nil {
			return nil, fmt.Errorf("%.0f rules: %w", n, err)
		}
		c.sizes = append(c.sizes, n)
	}
	return c, nil
}

func (s *scale) ruled(c *curve, root, settings string) error {
	var starts []float64
	for i := range often {
		home, err := s.home()
		if err != nil {
			return err
		}
		cmd := s.host.command(root, home)
		cmd.Args = append(cmd.Args, "--settings", settings)
		conn, took, err := start(cmd)
		if err != nil {
			return err
		}
		starts = append(starts, milliseconds(took))
		if i == often-1 {
			c.add("start to initialize", "ms", median(starts))
			err = s.underRules(c, conn, root)
		}
		if err := errors.Join(err, conn.stop()); err != nil {
			return err
		}
	}
	return nil
}

func (s *scale) underRules(c *curve, conn *server, root string) error {
	settle(conn.cmd.Process.Pid)
	return c.rest(conn, []named{
		{"Read", read(filepath.Join(root, "README.md"))}, {bashRow, bash("true")},
		{"Grep, one page", query{pattern: "return", mode: content}.ask(aPage)},
	})
}
