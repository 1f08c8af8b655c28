package shell

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// wrapper is what a shell runs: it waits for a [message], goes to its directory,
// evaluates its text and reports the working directory.
//
//   - It is one line, so that bash counts the lines of the text from 1, and it keeps
//     everything in REPLY and the positional parameters, which it empties: the
//     command finds no variable of ours.
//   - Bash reads a pipe byte by byte up to a delimiter, but in blocks up to a
//     length (read -N). Bash 3, which macOS has, knows no -N and reads to the end.
//     LC_ALL=C makes the length one of bytes; changing the locale takes longer
//     than all the rest, so that is only done where it matters.
//   - What can be done before the message comes is done before: no call waits then.
//   - The report's descriptor is closed while the command runs. Both the normal
//     end and the EXIT trap report, because a command may set an EXIT trap of its
//     own or call exit; the first to report says so in the second parameter. A
//     directory that is gone is reported as "". The braces with 2>/dev/null keep
//     this out of the trace of set -x.
//   - The report also holds the exit status and the traps that can still run: if
//     there are none but ours, the shell will do nothing but end, and the last word
//     says that it has come so far.
//   - eval is not part of an && or || list or an if: set -e would not count there.
const wrapper = openReport +
	`trap '` + exitTrap + `' EXIT; ` + rehearsal +
	`if ((BASH_VERSINFO > 3)); then read -r -N ` + headSize + ` -u ` + scriptFD + `; ` +
	`if [[ $REPLY == ` + plainText + `* ]]; then read -r -N "${REPLY:1}" -u ` + scriptFD + `; else LC_ALL=C read -r -N "${REPLY:1}" -u ` + scriptFD + `; fi; ` +
	`else read -r -d "" -u ` + scriptFD + `; REPLY=${REPLY:` + headSize + `}; fi; ` + endScript +
	`set -- "${REPLY%%` + separator + `*}"; REPLY=${REPLY#*` + separator + `}; ` +
	`cd -P -- "$1" || { echo "` + refusal + `" >&` + reportFD + `; trap - EXIT; exit 1; }; exec 2>&1; set --; unset OLDPWD; ` +
	ownEditor +
	`eval "$REPLY" ` + reportFD + `>&-` + hideScript + `; ` +
	`{ set -- "$?" "` + reported + `"; set +x; { ` + reportEnd + `builtin trap -p EXIT DEBUG; } >&` + reportFD + `; ` + lastWord + `} 2>/dev/null; builtin exit "$1"`

// ownEditor lets a text that names an editor have it, as in git -c core.editor=true. The variables that keep git from
// waiting for a person would win over what the text says: each program has an order of them.
const ownEditor = `case " $REPLY" in *core.editor=*|*sequence.editor=*|*[^[:alnum:]]EDITOR=*|*[^[:alnum:]]VISUAL=*) ` +
	`[[ $GIT_SEQUENCE_EDITOR != false ]] || unset GIT_SEQUENCE_EDITOR;; esac; ` +
	`case " $REPLY" in *core.editor=*|*[^_[:alnum:]]EDITOR=*|*[^_[:alnum:]]VISUAL=*) ` +
	`[[ $GIT_EDITOR != false ]] || unset GIT_EDITOR; [[ $VISUAL != false ]] || unset VISUAL;; esac; `

// rehearsal does once, ahead of time, what will be done with the message. When bash first shows traps, it asks the
// system for the state of every signal, and it allocates memory as it goes. Errors about the directory of the message
// go into the report.
const rehearsal = `builtin trap -p EXIT >/dev/null; exec 2>&` + reportFD + `; cd -P /; ` +
	`eval "{ builtin pwd -P; builtin trap -p DEBUG; } >/dev/null` + hideScript + `"; set -- x; set --; `

// exitTrap is the EXIT trap of a shell whose command sets none.
const exitTrap = `{ set -- "$?" "${2-}"; set +x; [[ $2 == "` + reported + `" ]] || ` +
	`{ ` + reportEnd + `builtin trap -p DEBUG; } >&` + reportFD + `; ` + lastWord + `} 2>/dev/null`

// reportEnd reports the working directory and the exit status, which is the first
// parameter. It is written so that a function named pwd or exit or an ERR trap of
// the command does not see it.
const reportEnd = `builtin pwd -P || builtin echo || :; builtin echo "` + separator + `$1"; `

// Marks of the wrapper.
const (
	reported = "!reported"                         // second parameter: the report has been made
	refusal  = "!"                                 // end of a report: the command was not run, and why
	ownTraps = "trap -- '" + exitTrap + "' EXIT\n" // end of a report: the traps, if the command set none
)

// Parts of a message: a letter, the number of bytes that follow the head in ten
// digits, the directory, a separator that no clean path contains, and the text.
const (
	headSize  = "11"
	plainText = "A" // ASCII only, where characters are bytes in every locale
	otherText = "U"
	separator = "//"
)

// message is a command for a shell that waits.
func message(dir, text string) string {
	dir = filepath.Clean(dir)
	if dir == "/" {
		dir = "/." // otherwise the separator would begin with the slash of the directory
	}
	body := dir + separator + text
	kind := plainText
	if strings.ContainsFunc(body, func(r rune) bool { return r > 0x7f }) {
		kind = otherText
	}
	return fmt.Sprintf("%s%010d%s", kind, len(body), body)
}

// finalDir is what a shell reports at its end.
type finalDir struct {
	dir     string // "": unknown
	gone    bool   // the directory has been removed
	refused string // why the shell did not run the command
	over    bool   // nothing of the command was left to run in the shell itself
	status  int    // its exit status, if over is set
}

func parseReport(text string) finalDir {
	var w finalDir
	dir, rest, ended := strings.Cut(text, "\n"+separator)
	if ended {
		status, traps, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(status)
		w.over, w.status = err == nil && strings.HasSuffix(text, "\n") && (traps == "" || traps == ownTraps), n
	} else if dir, ended = strings.CutSuffix(text, "\n"); !ended {
		return w
	}
	switch {
	case dir == "":
		w.gone = true
	case dir[0] == '/':
		w.dir = dir
	default:
		if why, ok := strings.CutSuffix(dir, refusal); ok {
			w.refused = strings.TrimSpace(strings.TrimPrefix(why, "bash: line 1: "))
		}
	}
	return w
}
