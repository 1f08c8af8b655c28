package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// filesCommand prints for each call how many source files run code that the start of a host and its list of tools do
// not run. With the argument -v it names them.
func filesCommand(args []string, out io.Writer) error {
	top, err := checkout()
	if err != nil {
		return err
	}
	return scratch(func(dir string) error {
		binary := filepath.Join(dir, ours)
		if err := build(top, binary, "-cover", "-coverpkg=./..."); err != nil {
			return err
		}
		a := filepath.Join(dir, "tree", "a.txt")
		if err := os.MkdirAll(filepath.Dir(a), 0o755); err != nil {
			return err
		}
		read := call{"Read", map[string]any{"file_path": a}}
		calls := map[string][]call{
			"Read": {read},
			"Edit": {read, {"Edit", map[string]any{"file_path": a, "old_string": "a\na\n", "new_string": "b\n"}}},
			"Bash": {{"Bash", map[string]any{"command": "true"}}},
		}
		atStart, err := crossed(top, dir, binary, nil)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if err := os.WriteFile(a, []byte("a\na\nc\n"), 0o644); err != nil {
				return err
			}
			beyond, err := crossed(top, dir, binary, calls[name])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			maps.DeleteFunc(beyond, func(file string, _ bool) bool { return atStart[file] })
			fmt.Fprintf(out, "%s: %d files\n", name, len(beyond))
			if slices.Contains(args, "-v") {
				fmt.Fprintln(out, "  "+strings.Join(slices.Sorted(maps.Keys(beyond)), "\n  "))
			}
		}
		return nil
	})
}

// crossed returns the files in which a host runs at least one statement while it starts and answers the given calls.
func crossed(top, dir, binary string, calls []call) (map[string]bool, error) {
	counters, err := os.MkdirTemp(dir, "counters")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "stdio", "--root", filepath.Join(dir, "tree"), "--allow", "Bash,Edit")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(counters, "home"), "GOCOVERDIR=" + counters}
	s, _, err := start(cmd)
	if err != nil {
		return nil, err
	}
	list, err := s.send("tools/list", []byte("{}"))
	if err != nil {
		return nil, err
	}
	if _, err := list.wait(); err != nil {
		return nil, err
	}
	for _, c := range calls {
		if _, _, err := s.call(c); err != nil {
			return nil, err
		}
	}
	if err := s.stop(); err != nil {
		return nil, err
	}
	profile := filepath.Join(counters, "profile")
	convert := exec.Command("go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+profile)
	convert.Dir = top
	if text, err := convert.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() { // FILE:LINES STATEMENTS COUNT
		file, block, _ := strings.Cut(lines.Text(), ":")
		if fields := strings.Fields(block); len(fields) == 3 && fields[2] != "0" {
			names[file] = true
		}
	}
	return names, lines.Err()
}
