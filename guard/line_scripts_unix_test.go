//go:build unix

package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptsOfScripts holds that what a script calls is looked into as the script is.
func TestScriptsOfScripts(t *testing.T) {
	_, ws := workspace(t)
	files := map[string]string{
		"a.sh": "#!/bin/sh\n./b.sh x\n", "b.sh": "if true; then bash src/c.sh; fi\n", "src/c.sh": "rm x\n",
		"d.sh": ". ./src/c.sh\n", "e.sh": "exec ./e.sh\n./fine.sh; make\n", "fine.sh": "ls\n./none.sh\n", "f.sh": "PATH=$PATH:.\nc.sh\n",
		"c.sh": "rm x\n", "tool": "#!/usr/bin/env python3\nrm\n", "g.sh": "./tool\n",
	}
	for i := range 8 {
		files[fmt.Sprintf("deep%d.sh", i)] = fmt.Sprintf("./deep%d.sh\n", i+1)
	}
	files["deep8.sh"] = "rm x\n"
	var many strings.Builder
	for i := range 150 {
		files[fmt.Sprintf("many/%d.sh", i)] = "ls\n"
		fmt.Fprintf(&many, "./many/%d.sh\n", i)
	}
	files["many.sh"] = many.String()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := policy(t, ws, rules(ws, "deny Bash(rm *)"), contained)
	for command, want := range map[string]Action{
		"find src -type f | xargs sort": Allow, "grep -rl x src | xargs sort": Allow, "cat x | xargs sort": Ask, "find src | xargs sort --compress-program": Ask, "cat x | xargs docker": Ask, "cat x | xargs tar": Ask,
		"git grep -l x | xargs sed -i s/a/b/": Allow, "git grep -li x -- src | xargs sed -i s/a/b/": Allow, "grep -rlZ x src | xargs -0 sed -i s/a/b/": Allow,
		"git grep -l x HEAD | xargs sed -i s/a/b/": Ask, "git grep x | xargs sed -i s/a/b/": Ask, "git grep -l x -- ../x | xargs sed -i s/a/b/": Ask, "git grep -l -O x | xargs sed -i s/a/b/": Ask,
		"./a.sh": Ask, "bash a.sh": Ask, "sh -e ./b.sh": Ask, ". ./d.sh": Ask, "./e.sh": Allow, "./fine.sh": Allow, "./g.sh": Allow,
		"PATH=$PATH:. c.sh": Ask, "export PATH=$PATH:$PWD; c.sh": Ask, "PATH=$PATH:. fine.sh": Allow, "c.sh": Allow,
		"./deep5.sh": Ask, "./deep0.sh": Ask, "./many.sh": Ask,
	} {
		v := p.Judge(Intent{Tool: "Bash", Command: &Command{Text: command, Dir: resolve(t, p, ".")}})
		if v.Action != want {
			t.Errorf("%s: %v, want %v\n%s", command, v.Action, want, v.Error())
		}
	}
}
