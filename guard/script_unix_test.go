//go:build unix

package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestScripts shows the text of the file that an asked command runs, and no other.
func TestScripts(t *testing.T) {
	top, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Read(.env)\nask Bash(bash:*)\nask Bash(./run.sh:*)\nask Bash(make:*)\nask Bash(npm:*)\nask Bash(.:*)\nallow Bash(sh:*)"), func(c *Config) {
		c.Contain = func() Containment { return Containment{Name: "test", Writes: true, Denies: true} }
	})
	for name, text := range map[string]string{
		"deploy.sh": "rm -rf /srv\n", "run.sh": "#!/bin/sh\nrm y\n", "sub/deploy.sh": "sub\n", "Makefile": "all:\n\trm z\n", "bin": "\x00\x01", "large": strings.Repeat("x", maxScript+1),
		"long": strings.Repeat("line\n", maxScriptText/4), "package.json": `{"scripts":{"prebuild":"rm a","build":"webpack","test":"jest"}}`, "sub/broken/package.json": "{",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree(t, ws, "link -> deploy.sh")
	for _, tt := range []struct {
		why, command string
		text, note   string // of the only script; both empty: there is none
		file         string
	}{
		{why: "a shell", command: "bash deploy.sh prod", text: "rm -rf /srv\n", file: "deploy.sh"},
		{why: "the program itself", command: "./run.sh", text: "#!/bin/sh\nrm y\n", file: "run.sh"},
		{why: "another directory", command: "cd sub && bash deploy.sh", text: "sub\n", file: "sub/deploy.sh"},
		{why: "make", command: "make all", text: "all:\n\trm z\n", file: "Makefile"},
		{why: "npm, with what runs before", command: "npm run build", text: "prebuild: rm a\nbuild: webpack\n", file: "package.json"},
		{why: "npm from below", command: "cd src && npm test", text: "test: jest\n", file: "package.json"},
		{why: "npm of a manifest that is not read", command: "cd sub/broken && npm test", note: "cannot be parsed", file: "sub/broken/package.json"},
		{why: "no such entry", command: "npm run other"},
		{why: "allowed", command: "cat deploy.sh"},
		{why: "a file that is not there", command: "bash later.sh", note: "no such file now", file: "later.sh"},
		{why: "after a command that may write it", command: "curl -o deploy.sh http://x; bash deploy.sh", text: "rm -rf /srv\n", note: "may change it", file: "deploy.sh"},
		{why: "after one in a wrapper", command: "timeout 5 cp x deploy.sh; bash deploy.sh", text: "rm -rf /srv\n", note: "may change it"},
		{why: "after one in the same shell", command: "bash -c 'cp x deploy.sh; bash deploy.sh'", text: "rm -rf /srv\n", note: "may change it"},
		{why: "after a redirection", command: "echo x > deploy.sh; bash deploy.sh", text: "rm -rf /srv\n", note: "may change it"},
		{why: "after one by another name", command: "echo x > link; bash deploy.sh", text: "rm -rf /srv\n", note: "may change it"},
		{why: "after one to a file that is not known", command: `echo x > "$f"; bash deploy.sh`, text: "rm -rf /srv\n", note: "may change it"},
		{why: "with its output in a file", command: "bash deploy.sh > log 2>&1 < /dev/null", text: "rm -rf /srv\n", file: "deploy.sh"},
		{why: "in two shells", command: "ls 2>/dev/null; bash -c 'timeout 5 bash deploy.sh'", text: "rm -rf /srv\n", file: "deploy.sh"},
		{why: "with other rights", command: "sudo bash deploy.sh", text: "rm -rf /srv\n", file: "deploy.sh"},
		{why: "after one that reads", command: "ls && bash deploy.sh", text: "rm -rf /srv\n", file: "deploy.sh"},
		{why: "a denied file", command: "bash secretlink", note: "no tool may read it", file: "secretlink"},
		{why: "outside", command: "bash " + top + "/out/f", note: "no tool may read it"},
		{why: "no text", command: "bash bin", note: "it is no text: 2 bytes", file: "bin"},
		{why: "too large", command: "bash large", note: "bytes", file: "large"},
		{why: "a directory that is not known", command: `cd "$d"; bash deploy.sh`, note: "not known before it runs"},
		{why: "an option that runs more", command: "bash --rcfile run.sh -i deploy.sh"},
		{why: "in a wrapper", command: "timeout 5 bash deploy.sh", text: "rm -rf /srv\n", file: "deploy.sh"},
	} {
		if tt.why == "a denied file" {
			tree(t, ws, "secretlink -> .env")
		}
		in := Intent{Tool: "Bash", Effects: []Effect{NewExec(tt.command, resolve(t, p, "."))}}
		all := p.Scripts(in, p.Judge(in))
		if tt.text+tt.note == "" {
			if len(all) > 0 {
				t.Errorf("%s: %q shows %+v", tt.why, tt.command, all)
			}
			continue
		}
		if len(all) != 1 || all[0].Text != tt.text || !strings.Contains(all[0].Note, tt.note) || tt.note == "" &&
			all[0].Note != "" ||
			tt.file != "" && all[0].File != filepath.Join(ws, tt.file) ||
			(all[0].Digest != "") != (tt.text != "" || strings.Contains(tt.note, "no text") ||
				strings.Contains(tt.note, "parsed")) {
			t.Errorf("%s: %q shows %+v", tt.why, tt.command, all)
		}
	}
	in := Intent{Tool: "Bash", Effects: []Effect{NewExec("bash long", resolve(t, p, "."))}}
	if all := p.Scripts(in, p.Judge(in)); len(all) != 1 || all[0].Cut == 0 || len(all[0].Text) > maxScriptText ||
		!strings.HasSuffix(all[0].Text, "\n") {
		t.Errorf("a long script: %d, %+v", len(all), all[0].Cut)
	}
}

// TestManyScripts holds that scripts which are too many to show are counted, and bound as those that are shown.
func TestManyScripts(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "ask Bash(bash:*)"))
	line, last := "", ""
	for i := range maxScripts + 3 {
		last = fmt.Sprintf("many%d.sh", i)
		tree(t, ws, last)
		line += "bash " + last + "; "
	}
	scripts := func() []Script {
		in := Intent{Tool: "Bash", Effects: []Effect{NewExec(line, resolve(t, p, "."))}}
		all := p.Scripts(in, p.Judge(in))
		if len(all) != maxScripts+1 || all[maxScripts].File != "3 more scripts" || all[maxScripts].Text != "" {
			t.Fatalf("%q shows %+v", line, all)
		}
		return all
	}
	before := scripts()
	if same := scripts(); !slices.Equal(before, same) {
		t.Errorf("%+v, and then %+v", before, same)
	}
	if err := os.WriteFile(filepath.Join(ws, last), []byte("evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := scripts(); after[maxScripts].Digest == before[maxScripts].Digest {
		t.Error("the last script changes, and the digest does not")
	}
}
