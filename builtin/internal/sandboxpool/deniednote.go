package sandboxpool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// Error texts of the system when a program may not write or read.
const (
	saysReadOnly = "ead-only file system" // with a capital from C, without one from Go and Node
	saysDenied   = "ermission denied"

	saysOtherDevice = "ross-device link" // of a directory in an overlay
)

// Limits of the search: a command that fails for many files prints the same for all.
const (
	maxDeniedLines = 64
	maxDeniedName  = 1024
)

// DeniedNotes returns notes on files in the output of a command to which the sandbox has denied access, and on what
// to do. dir is the directory in which the command ended.
func (c *Sandbox) DeniedNotes(output, dir string) []string {
	commands := c.policy.Commands()
	notes := bounds{
		writable: c.paths.Writable, readOnly: slices.Concat(c.paths.ReadOnly, c.held),
		withheld: commands.Denied, rule: commands.ReadRule, foreign: foreign,
		asked: func(real string) string { return commands.Asked(real, false) },
	}.notes(output, dir)
	if c.discard && strings.Contains(output, saysOtherDevice) && !strings.Contains(output, "hard link") {
		notes = append(notes, "In plan mode a directory that was there before cannot be renamed: copy it (cp -a), or leave "+
			"that to the plan.")
	}
	return notes
}

// deniedLists are the files that the lines of an output say were denied, by the reason.
type deniedLists struct{ outside, kept, unread, asked, others []string }

// bounds are the restrictions of a sandbox on files.
type bounds struct {
	writable, readOnly []string
	withheld           func(real string, dir bool) bool
	rule               func(real string) string // the deny rule on reading a file, or ""
	asked              func(real string) string // the rule that asks before it, or ""
	foreign            func(real string) bool   // the file belongs to another user, and the host is root
}

// isDir reports whether path is a directory.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// foreign reports whether a file belongs to another user, and this process is root's: its commands have root's powers
// over few such files, see [sandbox.Policy].Writable.
func foreign(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && os.Geteuid() == 0 && !privatefile.Ours(info)
}

// refused reports whether a line says that a file of another user, or a new one in a directory of theirs, was denied.
func (b bounds) refused(line, name, path string) bool {
	line = strings.TrimSpace(line)
	// The name ends the line. What stands before it may be the program's name.
	about := strings.HasSuffix(line, name+": P"+saysDenied) || strings.HasSuffix(line, "'"+name+"': P"+saysDenied)
	return about && within(path, b.writable) && (b.foreign(path) || b.foreign(filepath.Dir(path)))
}

func (b bounds) notes(output, dir string) []string {
	if !strings.Contains(output, saysReadOnly) && !strings.Contains(output, saysDenied) {
		return nil // as of nearly every command
	}
	var f deniedLists
	lines := 0
	for line := range strings.Lines(output) {
		write := strings.Contains(line, saysReadOnly)
		if !write && !strings.Contains(line, saysDenied) {
			continue
		}
		if lines++; lines > maxDeniedLines {
			break
		}
		b.sort(line, write, dir, &f)
	}
	var notes []string
	note := func(paths []string, format string) {
		if len(paths) > 0 {
			notes = append(notes, fmt.Sprintf(format, listed(paths)))
		}
	}
	note(f.outside, "The sandbox refused to write %s: commands write in the workspace, in /tmp and in $TMPDIR only, and "+
		"not what other programs have there. A person can add a directory in sandbox.filesystem.allowWrite.")
	note(f.kept, "The sandbox refused to write %s: commands must leave it as it is. Try Write or Edit: they say which "+
		"rule protects it, or ask a person.")
	note(f.unread, "The sandbox refused to read %s: a rule denies it"+rulesOn(f.unread, b.rule)+
		". Do not look for a way around it. Stop and ask the user.")
	note(f.asked, "A rule asks before %s is read"+rulesOn(f.asked, b.asked)+
		", so commands have no access to it. Use Read, which asks a person.")
	note(f.others, "The system refused %s: it belongs to another user, and commands have root's powers only over files "+
		"of the user who owns the workspace. A person can start the host as its owner, in a container with --user \"$(stat "+
		"-c %%u:%%g .)\".")
	return notes
}

// rulesOn returns the rules on some files.
func rulesOn(files []string, of func(real string) string) string {
	var rules []string
	for _, file := range files {
		if rule := of(settled(file)); rule != "" && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	if len(rules) == 0 {
		return ""
	}
	return " (" + strings.ReplaceAll(strings.Join(rules, ", "), "%", "%%") + ")"
}

// sort adds the file that a line is about to one of the lists, if the sandbox is the reason for the message.
func (b bounds) sort(line string, write bool, dir string, f *deniedLists) {
	for _, name := range names(line) {
		said := name
		if !filepath.IsAbs(name) {
			said = filepath.Join(dir, name)
		}
		path := settled(said)
		into := (*[]string)(nil)
		switch {
		case !write && b.withheld(path, isDir(path)):
			into = &f.unread
		case !write && b.asked(path) != "":
			into = &f.asked
		case !write && b.refused(line, name, path):
			into = &f.others
		case write && within(path, b.readOnly):
			into = &f.kept
		case write && (filepath.IsAbs(name) || strings.HasPrefix(name, "..")) && !within(path, b.writable):
			into = &f.outside
		}
		if into != nil {
			// The note says this name and not where it leads, which may be the name of a denied file.
			if said = filepath.Clean(said); !slices.Contains(*into, said) {
				*into = append(*into, said)
			}
			return // a message is about one file
		}
	}
}

// names returns the possible file names in a message: quoted texts, and words between spaces and colons.
func names(line string) []string {
	var all []string
	for _, words := range [][]string{
		strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("'\"`‘’“”\n", r) }),
		strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n:,;'\"`‘’“”()[]", r) }),
	} {
		for _, w := range words {
			if w = strings.TrimSpace(w); w != "" && len(w) <= maxDeniedName && !strings.Contains(w, saysDenied) &&
				!strings.Contains(w, saysReadOnly) {
				all = append(all, w)
			}
		}
	}
	return all
}

// settled resolves the symbolic links of a path. Its last elements need not exist.
func settled(name string) string {
	path, rest := filepath.Clean(name), ""
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		above := filepath.Dir(path)
		if above == path {
			return filepath.Join(path, rest)
		}
		path, rest = above, filepath.Join(filepath.Base(path), rest)
	}
}

func within(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir ||
			strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
	})
}

// listed returns the first paths, and the number of the others.
func listed(paths []string) string {
	switch n := len(paths) - 1; n {
	case 0:
		return paths[0]
	case 1:
		return paths[0] + " and one other"
	default:
		return fmt.Sprintf("%s and %d others", paths[0], n)
	}
}
