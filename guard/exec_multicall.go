package guard

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

// maxMultiCall is how much of a file is searched for the names of its programs.
const maxMultiCall = 8 << 20

// isMultiCall reports whether a file of that name contains many programs. Its first argument, or the name by which it
// is called, selects one. busybox accepts every name that begins with its own.
func isMultiCall(name string) bool {
	return execKnown().applets[name] || strings.HasPrefix(name, "busybox") || strings.HasPrefix(name, "toybox")
}

// multiCall adds the programs of the i-th file, if it contains many: the one that these names and arguments select,
// and those that it starts without the kernel. busybox and toybox start many of their own programs without exec, so
// that no later check sees them.
func (id *identity) multiCall(i int, names, args []string) {
	if i >= len(id.exec.Files) {
		return
	}
	f := id.exec.Files[i]
	own := installed.namesOf(idOf(f))
	called := path.Base(args[0])
	// Lvm lvremove, kmod rmmod.
	if len(args) > 1 && len(own) > 1 && called == path.Base(f.Name) && args[1] != called && slices.Contains(own, args[1]) {
		id.add(args[1:])
	}
	switch {
	case slices.ContainsFunc(names, isMultiCall), slices.ContainsFunc(own, isMultiCall):
	case len(own) == 0 && command.Known(called) && (holds(f, "BusyBox v") || holds(f, "toybox")):
	default:
		return
	}
	words := slices.Clone(args)
	if words[0] = called; !isMultiCall(called) && slices.ContainsFunc(names, isMultiCall) && !command.Known(called) &&
		!slices.Contains(own, called) {
		words[0] = "busybox" // a copy of busybox under a name that no program has
	}
	for len(words) > 1 && isMultiCall(words[0]) {
		words = words[1:]
		words[0] = strings.TrimPrefix(words[0], "--coreutils-prog=")
	}
	id.add(words)
	inside := command.AnalyzeWords(words)
	for _, s := range inside.Commands[min(1, len(inside.Commands)):] {
		id.inside = append(id.inside, judged{s, &f})
	}
	if (inside.Hiding || id.exec.Cut) && startsInside(f, own) {
		id.hiding = append(id.hiding, f)
	}
}

// hides returns the program of a rule that may start inside a file whose arguments do not tell what it starts.
func (id *identity) hides(programs []string) string {
	for _, f := range id.hiding {
		for _, name := range programs {
			if holds(f, name+"\x00") {
				return name
			}
		}
	}
	return ""
}

// holds reports whether a file has some text in it.
func holds(f execgate.File, text string) bool {
	if f.Handle == nil || f.Size > maxMultiCall {
		return false
	}
	content, err := io.ReadAll(io.NewSectionReader(f.Handle, 0, f.Size))
	return err == nil && bytes.Contains(content, []byte(text))
}

// startsInside reports whether a shell in a file with many programs starts the other programs without the kernel. An
// installed file is tried; any other is assumed to do so.
func startsInside(f execgate.File, own []string) bool {
	for _, name := range own {
		if !isMultiCall(name) {
			continue
		}
		insides.Lock()
		defer insides.Unlock()
		if was, ok := insides.by[idOf(f)]; ok {
			return was
		}
		starts := tryInside(f, name)
		insides.by[idOf(f)] = starts
		return starts
	}
	return true
}

// insides caches the results of tryInside.
var insides = struct {
	sync.Mutex
	by map[realpath.ID]bool
}{by: map[realpath.ID]bool{}}

// tryInside runs the shell of an installed file, has it start another program of that file with a PATH that leads
// nowhere, and reports whether that worked.
func tryInside(f execgate.File, name string) bool {
	const longest = 5 * time.Second
	file, err := hostprogram.Find(name)
	if err != nil {
		return true
	}
	info, err := os.Stat(file)
	if err != nil {
		return true
	}
	if id, _ := realpath.Identify(info); id != idOf(f) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	cmd := hostprogram.Command(ctx, name, "sh", "-c", "basename inside/started; echo tried")
	cmd.Env = []string{"PATH=/nonexistent"}
	out, _ := cmd.Output() // the output tells
	return string(out) != "tried\n"
}
