// Bench measures this host next to the programs that people use instead, and proves that its answers are theirs.
//
//	go run ./integration/bench [flags]          the host and its peers, interleaved in one run
//	go run ./integration/bench compare [COMMIT] this checkout and past releases; fails if something became slower
//	go run ./integration/bench scale [--full]   cost against the size of trees, files, rules and sessions
//	go run ./integration/bench behaviour        what the host and its peers do with the calls of the README's table
//	go run ./integration/bench threats          the classes of attacks, and what holds each
//	go run ./integration/bench files [-v]       how many files of the product a Read, an Edit and a Bash cross
//
// Peers are found on the PATH and below --peers, where the script integration/bench/peers puts them. What is absent
// is left out and said. Figures are ratios of medians of rounds in which everything was measured by turns, with
// bounds of 95 % confidence; absolute times depend on the machine and decide nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := command(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "floor":
			return floor(os.Stdin, os.Stdout)
		case "compare":
			return compareCommand(args[1:])
		case "scale":
			return scaleCommand(args[1:])
		case "behaviour":
			return behaviourCommand(args[1:])
		case "threats":
			return threats(os.Stdout)
		case "files":
			return filesCommand(args[1:], os.Stdout)
		}
	}
	return peersCommand(args)
}

// A peersRun is a run concurrently with the peers.
type peersRun struct {
	quick           bool
	peers, large    string // directories
	binary          string // to be built if ""
	servers, search effort
}

// thorough is the default run, which takes less than 5 minutes on two cores.
func thorough() *peersRun {
	return &peersRun{
		servers: effort{rounds: 300, least: 10, budget: 6 * time.Second},
		search:  effort{rounds: 40, least: 4, budget: 6 * time.Second},
	}
}

// brief is a smoke test of less than one.
func brief() *peersRun {
	return &peersRun{
		quick:   true,
		servers: effort{rounds: 20, least: 3, budget: time.Second},
		search:  effort{rounds: 3, least: 1, budget: time.Second},
	}
}

func peersCommand(args []string) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := f.Bool("quick", false, "a smoke test: under a minute, with the small tree alone")
	peers := f.String("peers", "", "the `directory` that integration/bench/peers has filled")
	large := f.String("large", "", "a large tree to search as well, such as Debian's package linux-source unpacked in a `directory`")
	binary := f.String("binary", "", "measure this `file` and do not build the host")
	asJSON := f.String("json", "", "write every sample to a `file`")
	asMarkdown := f.String("markdown", "", "write the tables to a `file`")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unknown command %q; there are compare, scale, behaviour, threats and files", f.Arg(0))
	}
	r := thorough()
	if *quick {
		r = brief()
	}
	r.large, r.peers, r.binary = *large, *peers, *binary
	rep := newReport()
	err := scratch(func(dir string) error { return r.measure(rep, dir) })
	if err != nil {
		return err
	}
	for path, write := range map[string]func(io.Writer) error{
		*asJSON: rep.json, *asMarkdown: func(out io.Writer) error { return rep.print(out, true) },
	} {
		if path != "" {
			if err := save(path, write); err != nil {
				return err
			}
		}
	}
	return rep.print(os.Stdout, false)
}

// scratch gives a function a directory of its own and removes that afterwards.
func scratch(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "toolhost-bench-*")
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

// measure fills the report.
func (r *peersRun) measure(rep *report, dir string) error {
	binary, err := r.built(dir)
	if err != nil {
		return err
	}
	found := peerPlaces(r.peers)
	rivals, err := found.servers(binary)
	if err != nil {
		return err
	}
	r.say(rep, found, rivals)
	if err := r.measureServers(rep, dir, rivals); err != nil {
		return err
	}
	progress("commands")
	if err := r.measureShell(rep, dir, binary); err != nil {
		return err
	}
	return r.measureTrees(rep, dir, found, binary)
}

// built is the binary to be measured.
func (r *peersRun) built(dir string) (string, error) {
	if r.binary != "" {
		return filepath.Abs(r.binary)
	}
	top, err := checkout()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, ours)
	return binary, build(top, binary)
}

// say names what is measured and what is not there.
func (r *peersRun) say(rep *report, found *places, rivals []*rival) {
	for _, v := range rivals {
		rep.Rivals = append(rep.Rivals, strings.TrimSpace(v.name+" "+v.version))
	}
	for _, name := range []string{claude, filesystem} {
		if !slices.ContainsFunc(rivals, func(v *rival) bool { return v.name == name }) {
			rep.note("%s is not installed and was left out", name)
		}
	}
	for name, programs := range map[string][]string{ripgrep: {"rg"}, ugrep: {"ugrep"}, fd: {"fd", "fdfind"}} {
		path := found.find(programs...)
		if path == "" {
			rep.note("%s is not installed and was left out", name)
			continue
		}
		rep.Rivals = append(rep.Rivals, shortened(versionOf(path, "--version")))
	}
	slices.Sort(rep.Notes)
	slices.Sort(rep.Rivals)
}

// measureServers measures start, memory, files and commands.
func (r *peersRun) measureServers(rep *report, dir string, rivals []*rival) error {
	progress("starts")
	if err := measureStarts(rep, r.servers, rivals, dir); err != nil {
		return err
	}
	progress("files and commands")
	return measureWork(rep, r.servers, rivals, dir)
}

// measureTrees measures searches.
func (r *peersRun) measureTrees(rep *report, dir string, found *places, binary string) error {
	small := filepath.Join(dir, "small")
	if err := makeTree(small, smallFiles); err != nil {
		return err
	}
	roots := map[string]string{"small": small}
	if !r.quick {
		medium, err := goTree()
		if err != nil {
			return err
		}
		roots["medium"] = medium
	}
	if r.large != "" {
		large, err := filepath.Abs(r.large)
		if err != nil {
			return err
		}
		if large, err = filepath.EvalSymlinks(large); err != nil { // as the host shows paths
			return err
		}
		roots["large"] = large
	}
	for _, tree := range []string{"small", "medium", "large"} {
		if roots[tree] == "" {
			continue
		}
		progress("the " + tree + " tree")
		s := newSearcher(rep, r.search, found, binary, tree, roots[tree], dir)
		if s == nil {
			return nil // there is nothing to compare with, which has been said
		}
		queries := toCode()
		if tree == "large" {
			queries = toKernel()
		}
		if err := s.all(queries); err != nil {
			return err
		}
	}
	return nil
}

// progress says on stderr what is under way.
func progress(what string) { fmt.Fprintln(os.Stderr, "measuring", what) }
