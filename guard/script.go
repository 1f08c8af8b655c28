package guard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/guard/internal/command"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// Limits of the scripts that a question shows.
const (
	// maxScripts is how many scripts of one command line are shown. The digests of all are.
	maxScripts = 8
	// maxScript is the longest script that is read, in bytes, and maxScriptText the longest part of it that is shown.
	maxScript, maxScriptText = 1 << 20, 64 << 10
	// maxUp is how many directories are searched for a manifest, from that of the command upwards.
	maxUp = 32
)

// A Script is the text that a command runs from a file: that of "bash deploy.sh", "./deploy.sh", "make" or "npm run
// build".
type Script struct {
	// Command is the command that runs it, and File the name of the file.
	Command, File string
	// Text is the text as it is now, at most 64 KiB of it, and Cut how many bytes more there are.
	Text string
	Cut  int
	// Digest is the SHA-256 digest of the file, in hexadecimal; "" if it was not read.
	Digest string
	// Note says why there is no text, or why it may not be what runs.
	Note string

	real string // the file itself
}

// Scripts returns the scripts that the commands of a call run, for a call that a person is asked about. The text is
// that of the file at this moment, as the command would find it. A file is read only if the caller may read it
// unasked. If there are too many scripts to show, one Script stands for the rest; its digest is the digest of all
// their digests.
func (p *Policy) Scripts(in Intent, v Verdict) (all []Script) {
	c := in.Command()
	if c == nil || c.Dir.real == "" {
		return nil
	}
	line := p.data.lineOf(*c)
	for at, s := range line.analysis.Commands {
		i := Item{What: "run " + s.Text}
		i.decided(v, c.Text)
		if i.Action == Ask {
			for _, found := range p.scriptsOf(line, s) {
				if found.Note == "" && (line.changesBefore(at) || line.writes(found.real)) {
					found.Note = "the line may change it before it runs"
				}
				if !slices.ContainsFunc(all, func(o Script) bool { return o.File == found.File && o.Text == found.Text }) {
					all = append(all, found)
				}
			}
		}
	}
	if len(all) <= maxScripts {
		return all
	}
	var digests strings.Builder
	for _, s := range all[maxScripts:] {
		fmt.Fprintf(&digests, "%q %s %s\n", s.File, s.Digest, digestOf([]byte(s.Text)))
	}
	more := fmt.Sprintf("%d more scripts", len(all)-maxScripts)
	return append(all[:maxScripts], Script{Command: "the line", File: more, Digest: digestOf([]byte(digests.String())),
		Note: "not shown"})
}

// changesBefore reports whether a command of the line may change files before the command at an index runs. Commands
// that enclose it, such as timeout, do not count.
func (ln *commandLine) changesBefore(at int) bool {
	outer := ln.analysis.Commands[at].Outer
	for i, s := range slices.Backward(ln.analysis.Commands[:at]) {
		if i == outer {
			outer = s.Outer
		} else if !s.ReadOnly() && s.Name != "cd" && s.Name != "pushd" {
			return true
		}
	}
	return false
}

// writes reports whether a redirection of the line may write a file.
func (ln *commandLine) writes(real string) bool {
	return slices.ContainsFunc(ln.analysis.Writes, func(w command.Word) bool {
		if !w.Static && !w.Home || ln.lost {
			return true
		}
		same := func(t *target) bool { return t.path.real == real }
		return slices.ContainsFunc(ln.targets([]command.Word{w}, ln.runsIn(w.Led), writing), same)
	})
}

// scriptsOf returns the scripts of one command, one for each directory that it may run in.
func (p *Policy) scriptsOf(ln *commandLine, s command.Simple) (all []Script) {
	at, ok := s.Script()
	if !ok {
		return nil
	}
	if ln.lost {
		return []Script{{Command: s.Text, File: nameOf(at),
			Note: "the directory that it runs in is not known before it runs"}}
	}
	for _, dir := range ln.runsIn(s.Led) {
		if found, ok := p.scriptIn(ln, at, dir); ok {
			found.Command = s.Text
			all = append(all, found)
		}
	}
	return all
}

// nameOf returns the name of a script that was not found.
func nameOf(at command.Script) string {
	if at.File.Text != "" {
		return at.File.Text
	}
	return at.Names[0]
}

// scriptIn finds a script from a directory.
func (p *Policy) scriptIn(ln *commandLine, at command.Script, dir Path) (Script, bool) {
	var err error
	switch {
	case at.Entry != "":
		return p.manifestEntry(ln, at, dir)
	case at.File.Text != "":
		path, err := ln.resolve(at.File, at.File.Text, dir)
		if err != nil {
			return Script{}, false
		}
		return p.script(path, at.Program)
	case at.Dir.Text != "":
		if dir, err = ln.resolve(at.Dir, at.Dir.Text, dir); err != nil {
			return Script{}, false
		}
	}
	for _, name := range at.Names {
		path, err := ln.resolve(command.Word{Text: name, Static: true}, name, dir)
		if err == nil && path.Regular() {
			return p.script(path, false)
		}
	}
	return Script{}, false
}

// script reads a script. ok is false for a program that is not text and for a file that may not be read.
func (p *Policy) script(path Path, program bool) (Script, bool) {
	s := Script{File: path.String(), real: path.real}
	raw, err := p.readScript(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Note = "there is no such file now"
		return s, !program || p.data.inside.Hold(pathname.Slashed(path.real))
	case err != nil:
		s.Note = err.Error()
		return s, !program
	}
	s.Digest = digestOf(raw)
	if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		s.Note = fmt.Sprintf("it is no text: %d bytes", len(raw))
		return s, true
	}
	s.show(string(raw))
	return s, true
}

// show sets the text, in full lines.
func (s *Script) show(text string) {
	if s.Text = text; len(text) > maxScriptText {
		s.Text = text[:maxScriptText]
		if end := strings.LastIndexByte(s.Text, '\n'); end > 0 {
			s.Text = s.Text[:end+1]
		}
	}
	s.Cut = len(text) - len(s.Text)
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// readScript reads a file that the caller may read unasked.
func (p *Policy) readScript(path Path) ([]byte, error) {
	if p.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: path}}}).Action != Allow {
		return nil, errors.New("it is not shown, because no tool may read it unasked")
	}
	info, err := path.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not shown, because it is no regular file")
	}
	var room bytes.Buffer
	if info.Size() > maxScript {
		return nil, fmt.Errorf("it is not shown, because it has %d bytes", info.Size())
	}
	f, err := path.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = room.ReadFrom(io.LimitReader(f, maxScript))
	return room.Bytes(), err
}

// manifestEntry returns the scripts of the nearest package.json that run under the name of an entry.
func (p *Policy) manifestEntry(ln *commandLine, at command.Script, dir Path) (Script, bool) {
	for range maxUp {
		path, err := ln.resolve(command.Word{Text: at.Names[0], Static: true}, at.Names[0], dir)
		if err != nil {
			return Script{}, false
		}
		if path.Regular() {
			return p.entryOf(path, at.Entry)
		}
		up, err := ln.data.resolve(dir, "..")
		if err != nil || up.real == dir.real {
			return Script{}, false
		}
		dir = up
	}
	return Script{}, false
}

// entryOf returns the scripts of a manifest: that of the entry, and those that run before and after it.
func (p *Policy) entryOf(path Path, entry string) (Script, bool) {
	s := Script{File: path.String(), real: path.real}
	raw, err := p.readScript(path)
	if err != nil {
		s.Note = err.Error()
		return s, true
	}
	s.Digest = digestOf(raw)
	var manifest struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal(raw, &manifest) != nil {
		s.Note = "it cannot be parsed"
		return s, true
	}
	var b strings.Builder
	for _, name := range []string{"pre" + entry, entry, "post" + entry} {
		if text, ok := manifest.Scripts[name]; ok {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}
	s.show(b.String())
	return s, b.Len() > 0
}
