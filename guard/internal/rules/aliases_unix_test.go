//go:build unix

package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settings"
)

// slippery is a workspace with some files, and the list that entries of one file make for it.
func slippery(t *testing.T, kind Kind, rules ...string) (ws string, l *List, warnings []string) {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", "src/main.go", "sec/a.key", "docs/x.md", "build/o"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place := pathname.Place{Given: ws, Real: ws}
	c := &Compiler{Home: pathname.Place{Given: ws + "/home", Real: ws + "/home"}, Roots: []pathname.Place{place},
		Bounds: []pathname.Place{place}}
	var entries []settings.Entry
	for _, text := range rules {
		entries = append(entries, settings.Entry{Text: text, File: "settings.json"})
	}
	l = c.Compile(kind, entries, pathname.Exact)
	return ws, l, c.Warnings
}

// TestSlips denies files by rules that match nothing as they stand. Each is warned of by its name, and what is meant is denied.
func TestSlips(t *testing.T) {
	for rule, denied := range map[string]string{
		`Read(.\.env)`: ".env", `Read(.\\.env)`: ".env", `Read($HOME/.env)`: "home/.env", `Read(%USERPROFILE%\.env)`: "home/.env", `Read(${HOME}/.env)`: "home/.env",
		"Read(\u200b.env)": ".env", "Read(.e\u200dnv)": ".env", "Read(.env\ufeff)": ".env", "Read(.\u0435nv)": ".env", "Read(\uff0eenv)": ".env", "Read(\u202e.env\u202c)": ".env",
		`Read(^\.env$)`: ".env", `Read(^.env$)`: ".env", `Read(/^\.env$/)`: ".env", `Read(\.env$)`: ".env", `Read(.*\.key)`: "sec/a.key", `Read((^|/)\.env$)`: "",
		`Read((.env|a.key))`: "sec/a.key", `Read(.*\.(key|pem)$)`: "sec/a.key", `Read(\w+\.key)`: "",
		"Read(.env/)": "", "Read(src/main.go/)": "", "Read(src/main.go/**)": "", "Read(/.env/*)": "", "Read(.env/**/*)": "", "Read(**/.env/)": "",
		`Read(sec\a.key)`: "sec/a.key", `Read(.\sec\a.key)`: "sec/a.key", `Edit(src\main.go)`: "src/main.go",
		"Read(a),Read(.env)": ".env", "Read(a), Edit(.env)": ".env", "Read(a)\nRead(.env)": ".env", "Read(a) Read(.env)": ".env", "Read(a)Read(.env)": ".env", "Read(a);Read(.env)": ".env",
		"Read(path:.env)": ".env", "Read(file_path:.env)": ".env", "Read(file_path: src/main.go)": "src/main.go", "Read(glob:*.key)": "sec/a.key", `Read(regex:^\.env$)`: ".env",
		"Read(.env|a.key)": "sec/a.key", "Read(.env;*.key)": "sec/a.key", "Read(.x .env)": ".env",
		"Read((.env))": ".env", "Read(.env))": ".env", "Read(<.env>)": ".env", "Read(\u201c.env\u201d)": ".env", `Read("$HOME/.env")`: "home/.env", "Read(@.env)": ".env",
		"Read(.env # secrets)": ".env", "Read(~other/.env)": "",
		"R\u0435ad(.env)": ".env", "\uff32ead(.env)": ".env", "Re\u0251d(.env)": ".env", "Re\u200bad(.env)": ".env", "\u13a1ead(.env)": ".env", "Edit\u200b(.env)": ".env", "mcp__toolh\u043est__Read(.env)": ".env",
		"Re\u0430d": ".env", "\u0395dit": "src/main.go", "Wr\u0131te": "src/main.go",
	} {
		ws, l, warnings := slippery(t, Deny, rule)
		if said := strings.Join(warnings, "\n"); !strings.Contains(said, "permissions.deny: ") || len(warnings) == 0 {
			t.Errorf("%+q: no warning", rule)
		} else if head, _, _ := strings.Cut(rule, "("); !strings.Contains(said, head) &&
			!strings.Contains(said, strings.Trim(quoteASCII(head), `"`)) {
			t.Errorf("%+q: the warning does not name it: %s", rule, said)
		}
		file := filepath.Join(ws, denied)
		if denied != "" && l.File("Write", Writing, file, file, false) == nil && l.Named("Write") == nil {
			t.Errorf("%+q: %s is not denied: %s", rule, denied, warnings)
		}
		if _, l, warnings := slippery(t, Allow, rule); l.Named("Read") != nil || l.Named("Edit") != nil ||
			l.Named("Write") != nil || len(warnings) == 0 {
			t.Errorf("%+q: it allows a tool, or is not warned of: %s", rule, warnings)
		}
	}
}

func quoteASCII(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 127 {
			return b.String()
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TestCommandSlips denies commands by rules with characters that look like others, or are not seen.
func TestCommandSlips(t *testing.T) {
	for _, rule := range []string{"Bash(rm\u200b:*)", "Bash(rm\u00a0-rf *)", "Bash(\uff52m:*)", "B\u0430sh(rm:*)",
		"Bash(mv:*),Bash(rm:*)", "Bash(rm:*),Read(.env)"} {
		_, l, warnings := slippery(t, Deny, rule)
		if len(warnings) == 0 || l.Commands.Text("rm -rf x") == nil {
			t.Errorf("%+q: %v, warnings %q", rule, l.Commands.Text("rm -rf x"), warnings)
		}
	}
}

// TestIdleException warns of exceptions to nothing.
func TestIdleException(t *testing.T) {
	for _, rules := range [][]string{{"Read(!.env)"}, {"Read(!.env.example)", "Read(.env.*)"}} {
		if _, _, warnings := slippery(t, Deny, rules...); len(warnings) == 0 ||
			!strings.Contains(warnings[0], rules[0]) {
			t.Errorf("%q: %q", rules, warnings)
		}
	}
}

// TestOrdinaryRules are rules as people write them. None is warned of.
func TestOrdinaryRules(t *testing.T) {
	rules := strings.Split(`Read(.env)
Read(.env.*)
Read(./.env)
Read(**/.env)
Read(**/*.pem)
Read(*.key)
Read(\.env)
Read(secrets/**)
Read(./secrets/**)
Read(/sec/**)
Read(sec/)
Read(build/)
Read(dist/)
Read(.venv/)
Read(**/node_modules/**)
Read(~/.ssh/**)
Read(~/.aws/credentials)
Read(//etc/passwd)
Read(//etc/ssl/private/**)
Read({.env,*.key})
Read(**/*.{pem,key,p12})
Read([a-c]*.txt)
Read([!a]*.txt)
Read([^a]*.txt)
Read(app/[slug]/page.tsx)
Read(app/(auth)/login/page.tsx)
Read((auth)/**)
Read(routes/users.$id.tsx)
Read(src/routes/+page.server.ts)
Read(c++/**)
Read(My Documents/report.docx)
Read(My\ Documents/**)
Read(\#notes)
Read(#notes#)
Read(\!important)
Read(what\?.md)
Read(a,b.txt)
Read(notes (1).txt)
Read(.git/config)
Read(../shared/**)
Read(@types/**)
Read(~$doc.docx)
Read(*~)
Read(Dockerfile*)
Read(отчёт-v2.pdf)
Read(資料/**)
Read(設計書（最終）.xlsx)
Read(Müller/**)
Read(**/*_test.go)
Read(packages/*/src/**/*.ts)
Read(*.log.?)
Read(100%/**)
Edit
Edit(/src/**)
Edit(**)
Edit(package-lock.json)
Write
Write(*.lock)
NotebookEdit(*.ipynb)
Grep(pattern:password)
Grep(path:src)
Glob(**/*.secret)
Glob(pattern:**/.env)
Bash
Bash(rm:*)
Bash(rm -rf *)
Bash(git push:*)
Bash(npm run test)
Bash(curl:*)
Bash(sudo *)
Bash(git commit -m *привет*)
Bash(sed -n 's/a/b/p' *)
Bash(grep -E "a|b" *)
Bash(awk '{print $1}' *)
Bash(docker compose up:*)
Bash(psql -c "select 1, 2")
Bash(*--no-verify*)
Bash(python3 -c "print((1), 2)")
Bash(run_in_background:true)
WebFetch(domain:example.com)
WebFetch
mcp__github
mcp__github__*
mcp__toolhost__Bash(rm:*)
Task
*Edit`, "\n")
	for _, rule := range rules {
		if _, _, warnings := slippery(t, Deny, rule); len(warnings) > 0 {
			t.Errorf("%q is warned of: %q", rule, warnings)
		}
	}
	if _, _, warnings := slippery(t, Deny, "Read(secrets/**)", "Read(!secrets/public/**)", "Read(*.pem)",
		"Read(!ca.pem)", "Read(.env.*)", "Read(!.env.example)", "Read({a,b}.txt)", "Read(!c.txt)", "Read(**)", "Read(!docs/**)"); len(warnings) > 0 {
		t.Errorf("exceptions are warned of: %q", warnings)
	}
}
