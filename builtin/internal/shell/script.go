package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
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
//   - What can be done before the message comes is done before: nobody waits then.
//   - The report's descriptor is closed while the command runs. Both the normal
//     end and the EXIT trap report, because a command may set an EXIT trap of its
//     own or call exit; the first to report says so in the second parameter. A
//     directory that is gone is reported as "". The braces with 2>/dev/null keep
//     this out of the trace of set -x.
//   - eval is not part of an && or || list or an if: set -e would not count there.
const wrapper = openReport +
	`trap '{ set +x; } 2>/dev/null; [[ ${2-} == "` + reported + `" ]] || { ` + reportDir + `; } 2>/dev/null' EXIT; ` +
	`if ((BASH_VERSINFO > 3)); then read -r -N ` + headSize + ` -u ` + scriptFD + `; ` +
	`if [[ $REPLY == ` + plainText + `* ]]; then read -r -N "${REPLY:1}" -u ` + scriptFD + `; else LC_ALL=C read -r -N "${REPLY:1}" -u ` + scriptFD + `; fi; ` +
	`else read -r -d "" -u ` + scriptFD + `; REPLY=${REPLY:` + headSize + `}; fi; ` + endScript +
	`set -- "${REPLY%%` + separator + `*}"; REPLY=${REPLY#*` + separator + `}; ` +
	`cd -P -- "$1" 2>&` + reportFD + ` || { echo "` + refusal + `" >&` + reportFD + `; trap - EXIT; exit 1; }; set --; unset OLDPWD; ` +
	`eval "$REPLY" ` + reportFD + `>&-; ` +
	`{ set -- "$?" "` + reported + `"; set +x; ` + reportDir + `; } 2>/dev/null; builtin exit "$1"`

// reportDir reports the working directory. It is written so that a function named
// pwd or exit or an ERR trap of the command does not see it.
const reportDir = `builtin pwd -P >&` + reportFD + ` || echo >&` + reportFD + ` || :; exec ` + reportFD + `>&-`

// Marks of the wrapper.
const (
	reported = "!reported" // second parameter: the report has been made
	refusal  = "!"         // end of a report: the command was not run, and why
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
		dir = "/." // or the separator would begin with it
	}
	body := dir + separator + text
	kind := plainText
	if strings.ContainsFunc(body, func(r rune) bool { return r > 0x7f }) {
		kind = otherText
	}
	return fmt.Sprintf("%s%010d%s", kind, len(body), body)
}

// reportMax is the most that is read of a report: PATH_MAX is 4,096, and the shell
// may add a message.
const reportMax = 8 << 10

// sendTimeout bounds handing over a script. Bash reads 1 MB in about 15 ms; only
// a shell that was stopped (SIGSTOP) takes longer.
const sendTimeout = 10 * time.Second

// A shell is a started bash that waits for its script.
type shell struct {
	proc   Process
	script *os.File // our end
	out    *os.File // read end of standard output and error
	dir    *os.File // read end of the report
}

// startShell starts a bash that waits for its script. It waits in /, so as not to
// hold a directory that a command may want to remove.
func startShell(start Start, bash string, env []string) (*shell, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	s := &shell{}
	var script, out, dir *os.File
	defer func() { closeAll(script, out, dir) }()
	var errs [3]error
	s.script, script, errs[0] = scriptPipe()
	s.out, out, errs[1] = os.Pipe()
	s.dir, dir, errs[2] = unwatchedPipe()
	if err := errors.Join(errs[:]...); err != nil {
		s.close()
		return nil, err
	}
	growPipe(s.out)
	if err := setBlocking(script, out, dir); err != nil {
		s.close()
		return nil, err
	}
	s.proc, err = start(Spec{
		Argv:  []string{bash, "--noprofile", "--norc", "-c", wrapper, "bash"},
		Dir:   rootDir,
		Env:   env,
		Files: childFiles(null, out, script, dir),
	})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// closeAll closes the files that are not nil; closing one twice does no harm.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// waiting reports whether the shell still waits for its script.
func (s *shell) waiting() bool {
	select {
	case <-s.proc.Done():
		return false
	default:
		return true
	}
}

// send hands the shell its directory and script. The shell runs nothing before it
// has read all of it.
func (s *shell) send(dir, text string) error {
	s.script.SetWriteDeadline(time.Now().Add(sendTimeout))
	_, err := s.script.WriteString(message(dir, text))
	return errors.Join(err, s.script.Close())
}

// status tells how the shell ended, as far as that is known already.
func (s *shell) status() (Status, error) {
	if s.waiting() {
		return Status{ExitCode: 128 + 9, Signal: "SIGKILL"}, nil
	}
	return s.proc.Wait()
}

// whereabouts is what a shell reports at its end.
type whereabouts struct {
	dir     string // "": unknown
	gone    bool   // the directory has been removed
	refused string // why the shell did not run the command
}

// report reads what the shell reported. A process that could not be killed may
// still hold the descriptor, so only what is there is read.
func (s *shell) report() whereabouts {
	buf := make([]byte, reportMax)
	n := readNow(s.dir, buf)
	return parseReport(string(buf[:n]))
}

func parseReport(text string) whereabouts {
	text, whole := strings.CutSuffix(text, "\n")
	switch {
	case !whole:
		return whereabouts{}
	case text == "":
		return whereabouts{gone: true}
	case text[0] == '/':
		return whereabouts{dir: text}
	}
	if why, ok := strings.CutSuffix(text, refusal); ok {
		return whereabouts{refused: strings.TrimSpace(strings.TrimPrefix(why, "bash: line 1: "))}
	}
	return whereabouts{}
}

// discard ends a shell that is not needed any more.
func (s *shell) discard() error {
	_, err := s.proc.Kill()
	s.close()
	return err
}

// close closes the runner's ends of the pipes.
func (s *shell) close() { closeAll(s.script, s.out, s.dir) }
