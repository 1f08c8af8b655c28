package command

import (
	"slices"
	"strings"
)

// Quote writes a text so that a shell takes it for one word that stands for itself.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// IsShell reports whether the command is a shell that reads scripts as bash does, or sources one.
func IsShell(c Simple) bool {
	return oneOf(c.Name, "bash sh dash ash rbash source .")
}

// Scripts returns the files that such a command reads its commands from.
func Scripts(c Simple) (files []Word) {
	if oneOf(c.Name, "source .") {
		return c.Args[1:min(len(c.Args), 2)]
	}
	for _, w := range c.Args[1:] { // a script in -c has reasons of its own, about other words
		if slices.Contains(c.Undecidable, c.Name+" "+runsFile+w.Text) {
			files = append(files, w)
		}
	}
	return files
}

// Talks reports whether the words of the command name no file whose content matters: the program prints them, compares
// them, or shows them to a person.
func Talks(c Simple) bool {
	return listed("talks", c.Name)
}

// Writes reports whether the program changes the files that it is given, or follows them as links.
func Writes(c Simple) bool {
	_, written := c.Files()
	if p, _ := recordOf("programs", c.Name); p.is("writes copies moves settings out-in in-place") {
		return !Talks(c)
	}
	return len(written) > 0 || oneOf(c.Name, "tar gtar bsdtar zip unzip")
}

// Starts reports whether a word of the command is the name of a program that runs what it is given or what the workspace says, so
// that the command may start it.
func Starts(c Simple) (name string, ok bool) {
	for _, w := range c.Args[1:] {
		if w.Static && (ObeysWorkspace(w.Text) || IsInterpreter(w.Text) || oneOf(w.Text, "bash sh dash ash zsh ksh fish env xargs find")) {
			return w.Text, true
		}
	}
	return "", false
}

// RunsAlone reports whether an interpreter that is given a script loads nothing from the directory it works in.
func RunsAlone(c Simple) bool {
	return oneOf(strings.TrimRight(c.Name, "0123456789."), "python node nodejs perl ruby php lua luajit")
}

// UnknownProgram begins the reason why a command is undecidable whose program is a word that is not static.
const UnknownProgram = "the name of the program is not known before it runs: "

// Accepted returns the reasons why the command is undecidable that say no more than what it is: a shell or an
// interpreter that is given a file, or one that keeps a list of directories for programs. Whether such a
// command is understood is for the caller to find out from its words.
func Accepted(c Simple) []string {
	accepted := []string{sourcesFile, c.Name + " " + interprets}
	if c.Name == "tmux" && len(c.Args) > 1 && oneOf(c.Args[1].Text, "display-message display") &&
		!slices.ContainsFunc(c.Args, func(w Word) bool { return !w.Static || strings.Contains(w.Text, "#(") }) {
		accepted = append(accepted, c.Name+" "+startsOthers)
	}
	for _, reason := range c.Undecidable {
		if strings.HasPrefix(reason, c.Name+" "+runsFile) {
			accepted = append(accepted, reason)
		}
	}
	return accepted
}

// ObeysWorkspace reports whether a program runs or obeys files that it finds by itself from the directory it works in:
// what a build says, a package manifest, plugins and configuration that are programs, or a repository's settings.
// Formatters and linters are among them, because they write what they are given.
func ObeysWorkspace(name string) bool {
	return listed("obeys the workspace", strings.TrimRight(name, "0123456789."))
}
