//go:build unix

package guard

import (
	"strings"
	"testing"
)

// TestLooseRules holds that a rule of several words finds them among options, by their
// other names and in what the line itself gives them, and says nothing of other commands.
func TestLooseRules(t *testing.T) {
	tests := []struct {
		rule               string
		denied, asked, not []string
	}{
		{"Bash(npm run deploy)", []string{"npm run --silent deploy", "npm run -s deploy", "npm -w sub run deploy"}, []string{"npm run $(x)"},
			[]string{"npm run build", "npm run deploy --dry-run", "npm run build deploy"}},
		{"Bash(npm publish:*)", []string{"npx -y npm@latest publish", "timeout 5 npm --silent publish"},
			[]string{"s=publish; npm $s", "npm $(echo publish)", "npm $SUB", "echo publish | xargs npm"},
			[]string{"npm install publish", "npm test -- publish", "echo npm publish"}},
		{"Bash(gh pr merge:*)", []string{"gh pr -R o/r merge 1", "gh -R o/r pr merge 1"}, nil, []string{"gh pr list", "gh pr view merge"}},
		{"Bash(pip install:*)", []string{"pip3 install x", "pip3.12 -q install x", "python3 -m pip install x", "python -Im pip install x", "python -W ignore -mpip install x"},
			nil, []string{"pip list", "python -m http.server", "python x.py -m pip install", "uv pip install x"}},
		{"Bash(docker compose down:*)", []string{"docker-compose down", "docker-compose -f x.yml down", "docker compose -f x.yml down"}, nil, []string{"docker-compose up"}},
		{"Bash(terraform apply:*)", []string{"terraform -chdir=x apply"}, []string{`tf() { terraform "$@"; }; tf apply`}, []string{"terraform plan", `terraform plan "$X"`}},
		{"Bash(chmod 777:*)", []string{"chmod -v 777 x", "chmod -R 777 x"}, nil, []string{"chmod 755 x", "chmod -R 755 x"}},
		{"Bash(rm -rf:*)", []string{"rm --recurs --forc x", "rm -fr x"}, []string{"f=-r; rm $f -f x", "rm $(printf '\\x2d%s' rf) x", "rm `echo -rf` x"},
			[]string{"rm -r -- x -f", "rm -f -- $(git ls-files -d)"}},
		{"Bash(git reset --hard:*)", []string{"git reset --har", "git -C . reset -q --hard"}, nil, []string{"git reset --soft HEAD~1"}},
		{"Bash(git branch -D:*)", []string{"git branch -df x", "git branch --delete --force x", "git branch -qD x"}, nil, []string{"git branch -d x", "git branch -f x"}},
		{"Bash(git push --force:*)", []string{"git push -uf origin x", "git push --forc"}, nil, []string{"git push --force-with-lease", "git push --follow-tags"}},
		{"Bash(*--no-verify*)", []string{"git commit -n", "git commit -anm x", "git commit -m x --no-ver", "git push --no-verify"}, nil,
			[]string{"git commit -mnew", `git commit -am "never -n"`, "git clean -n", "git push -n"}},
		{"Bash(rm -rf*)", []string{"rm -rfv x", "rm -fr x", "rm -r -f x", "/bin/rm --recursive --force x", "rm x -rf"}, nil, []string{"rm -r x", "rm -f x", "echo -rf"}},
		{"Bash(*rm -rf*)", []string{"rm -fr x", "sudo rm -f -r x", "rm --recurs --forc x"}, nil, []string{"rm -r x"}},
		{"Bash(* rm -rf *)", []string{"rm -rf x", "rm -fr x"}, nil, []string{"rm -r x"}},
		{"Bash(rm -rf /*)", []string{"rm -rf /", "rm -fr /x", "rm -r --force /x", "rm -rf -- /x"}, nil, []string{"rm -rf ./x", "rm -r x"}},
		{"Bash(rm --recursive*)", []string{"/bin/rm -rf x", "rm -R x", "rm x --recursive"}, nil, []string{"rm x"}},
		{"Bash(git push --force*)", []string{"git push --force-with-lease", "git push origin x --force-with-lease=x", "git push -uf origin x"}, nil, []string{"git push --follow-tags"}},
		{"Bash(git push -f*)", []string{"git push origin -f", "git -C . push --force"}, nil, []string{"git push origin f"}},
		{"Bash(npm run deploy*)", []string{"npm run --silent deploy:prod", "npm -w sub run deploy"}, nil, []string{"npm run build", "npm run build deploy"}},
		{"Bash(curl -X DELETE*)", []string{"curl -s -X DELETE http://x"}, nil, []string{"curl -X GET http://x"}},
		{"Bash(rm *:*)", []string{"rm x", "rm", "rm -rf x y"}, nil, []string{"rmdir x"}},
		{"Bash(git push *:*)", []string{"git push origin", "git -C . push"}, nil, []string{"git pull"}},
		{"Bash(npm run deploy*:*)", []string{"npm run deploy", "npm run --silent deploy:prod x"}, nil, []string{"npm run build"}},
		{"Bash(dd if=*)", []string{"dd of=x if=/dev/zero", "dd bs=1 count=2 if=/dev/zero"}, nil, []string{"dd of=if=x"}},
		{"Bash(dd of=/dev/*)", []string{"dd if=x of=/dev/sda"}, nil, []string{"dd if=/dev/zero of=x"}},
	}
	_, ws := workspace(t)
	for _, tt := range tests {
		p := policy(t, ws, testRules(ws, "deny "+tt.rule), contained)
		for want, commands := range map[Action][]string{Deny: tt.denied, Ask: tt.asked, Allow: tt.not} {
			for _, command := range commands {
				v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: command, Dir: resolve(t, p, ".")}}})
				if v.Action != want {
					t.Errorf("%s: %s: %v, want %v\n%s", tt.rule, command, v.Action, want, v.Error())
				}
				if want == Ask && strings.Contains(command, "SUB") && v.Rule != tt.rule {
					t.Errorf("%s: asked by %q, not by the rule", command, v.Rule)
				}
			}
		}
	}
}

// TestDoubtfulCommands holds that a deny of a command that is spelt as no command is is said to be doubtful, and guards
// what was meant where that can be told.
func TestDoubtfulCommands(t *testing.T) {
	_, ws := workspace(t)
	for _, tt := range []struct{ rule, denied, warning string }{
		{`Bash("rm":*)`, "rm -f x", "Bash(rm:*) is guarded too"},
		{`Bash('rm -rf':*)`, "rm -rf x", "Bash(rm -rf:*)"},
		{`Bash(\rm *)`, "rm x", "Bash(rm *)"},
		{"Bash(rm:victim)", "rm victim", "Bash(rm victim)"},
		{"Bash(git:push origin)", "git push origin", "Bash(git push origin)"},
		{"Bash(find:* -delete)", "find x -delete", "Bash(find * -delete)"},
		{"Bash(^rm)", "", "only * is a wildcard"},
		{"Bash([r]m *)", "", "only *"},
		{"Bash({rm,shred} *)", "", "only *"},
		{"Bash(rm.*)", "rm -rf x", "Bash(rm*) is guarded too"},
		{"Bash(rm.* x)", "rm x", "Bash(rm* x) is guarded too"},
		{"Bash(rm|mv)", "", "write Bash(rm *), Bash(mv *)"},
		{"Bash((rm|mv):*)", "", "write Bash(rm *), Bash(mv *)"},
		{"Bash(curl x|sh)", "curl x|sh", ""},
		{"Bash(./test.*)", "./test.sh", ""},
		{"Bash(rm -f .*)", "rm -f .x", ""},
		{"Bash([ -f *)", "[ -f x ]", ""},
		{"Bash(rm:*)", "rm x", ""},
		{"Bash(run_in_background:true)", "", ""},
		{"Bash(curl * | sh)", "curl x | sh", ""},
		{"Bash(npm run build:prod)", "npm run build:prod", ""},
	} {
		p := policy(t, ws, testRules(ws, "deny "+tt.rule), contained)
		if got := strings.Join(p.Warnings(), "\n"); (got == "") != (tt.warning == "") ||
			!strings.Contains(got, tt.warning) {
			t.Errorf("%s: warnings %q, want %q", tt.rule, got, tt.warning)
		}
		if tt.denied == "" {
			continue
		}
		if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: tt.denied, Dir: resolve(t, p, ".")}}}); v.Action != Deny {
			t.Errorf("%s does not deny %s: %v", tt.rule, tt.denied, v.Action)
		}
	}
}

// TestDoubtfulFiles holds the same of a rule that lists several patterns, or names a tool by its former name.
func TestDoubtfulFiles(t *testing.T) {
	_, ws := workspace(t)
	tree(t, ws, "a,b.txt", "cert.pem", "x, y")
	for _, tt := range []struct{ rule, denied, free, warning string }{
		{"Read(secrets/**, *.pem)", "secrets/key cert.pem", "README.md", "write a rule for each"},
		{"Read(secrets/**,cert.pem)", "secrets/key cert.pem", "README.md", "write a rule for each"},
		{"Read(*.{md, pem}, src)", "src/main.go", "", "write a rule for each"},
		{"Edit(.env, src)", "src/main.go .env", "README.md", "write a rule for each"},
		{"Read(*.{md,pem})", "README.md cert.pem", "src/main.go", ""},
		{"Read([a,b]*.pem)", "", "cert.pem", ""},
		{"Read(a,b.txt)", "a,b.txt", "README.md", ""},
		{"View(secrets/**)", "secrets/key", "README.md", "Read was meant"},
		{"Replace(src/**)", "src/main.go", "README.md", "Write was meant"},
		{"MultiEdit(src/**)", "src/main.go", "README.md", "Edit was meant"},
		{"LS(secrets/**)", "secrets/key", "README.md", ""},
	} {
		p := policy(t, ws, testRules(ws, "deny "+tt.rule), contained)
		if got := strings.Join(p.Warnings(), "\n"); (got == "") != (tt.warning == "") ||
			!strings.Contains(got, tt.warning) {
			t.Errorf("%s: warnings %q, want %q", tt.rule, got, tt.warning)
		}
		for names, want := range map[string]Action{tt.denied: Deny, tt.free: Allow} {
			for name := range strings.FieldsSeq(names) {
				if v := p.Judge(Intent{Tool: "Write",
					Effects: []Effect{Write{Path: resolve(t, p, name)}}}); v.Action != want {
					t.Errorf("%s: %s: %v, want %v", tt.rule, name, v.Action, want)
				}
			}
		}
	}
	p := policy(t, ws, testRules(ws, "mode default\nallow Edit(src/**, sub/**)\nallow View(src/**)"), contained)
	if got := p.Warnings(); len(got) != 2 {
		t.Errorf("what allows nothing is not told: %q", got)
	}
}

// TestRulesOfNoRoot holds that a pattern with a slash in front, in settings that belong to
// no root, is about the roots where it forbids, and about no more than it says where it
// allows.
func TestRulesOfNoRoot(t *testing.T) {
	top, ws := workspace(t)
	p := policy(t, ws, testRules(top, "mode default\ndeny Read(/src/**)\nask Edit(/README.md)\nallow Edit(/sub/**)"),
		contained)
	for name, want := range map[string]Action{"src/main.go": Deny, "README.md": Ask, "sub/x": Ask, "new.txt": Ask} {
		if v := p.Judge(Intent{Tool: "Write", Effects: []Effect{Write{Path: resolve(t, p, name)}}}); v.Action != want {
			t.Errorf("%s: %v, want %v\n%s", name, v.Action, want, v.Error())
		}
	}
	if v := p.Judge(Intent{Tool: "Read", Effects: []Effect{Read{Path: resolve(t, p, "src/main.go")}}}); v.Action != Deny {
		t.Errorf("reading: %v", v.Error())
	}
}
