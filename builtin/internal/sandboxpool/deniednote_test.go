package sandboxpool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeniedNotes: what a program says of a file that it may not write or read is explained where the sandbox is the reason, in the words
// of the programs that people use, and else not.
func TestDeniedNotes(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	away, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	hook, secret := filepath.Join(ws, ".git", "hooks"), filepath.Join(ws, ".env")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(ws, "link")); err != nil {
		t.Skip("no links: ", err)
	}
	b := bounds{writable: []string{ws}, readOnly: []string{hook}, withheld: func(real string, _ bool) bool { return real == secret }, rule: func(string) string { return "Read(s*)" },
		asked: func(real string) string { return map[string]string{filepath.Join(ws, "ask"): "Read(ask)"}[real] }}
	b.foreign = func(real string) bool { return filepath.Base(real) == "theirs" }
	const outside, kept, unread, theirs = "allowWrite", "leave it as it is", "Stop and ask the user", "another user"
	for name, tt := range map[string]struct{ output, note, path string }{
		"bash":                {"bash: line 1: AWAY/x: Read-only file system\n", outside, "AWAY/x:"},
		"coreutils":           {"touch: cannot touch 'AWAY/a b': Read-only file system\n", outside, "AWAY/a b:"},
		"python":              {"OSError: [Errno 30] Read-only file system: 'AWAY/x'\n", outside, "AWAY/x:"},
		"node":                {"Error: EROFS: read-only file system, open 'AWAY/x'\n", outside, "AWAY/x:"},
		"go":                  {"open AWAY/x: read-only file system\n", outside, "AWAY/x:"},
		"without a final end": {"mkdir: cannot create directory ‘AWAY/x’: Read-only file system", outside, "AWAY/x:"},
		"above":               {"touch: cannot touch '../../../zz/x': Read-only file system\n", outside, "zz/x:"},
		"moved":               {"mv: cannot move 'a' to 'AWAY/a': Read-only file system\n", outside, "AWAY/a:"},
		"many":                {"rm: cannot remove 'AWAY/1': Read-only file system\nrm: cannot remove 'AWAY/2': Read-only file system\nrm: cannot remove 'AWAY/3': Read-only file system\n", outside, "AWAY/1 and 2 others:"},
		"protected, relative": {"OSError: [Errno 30] Read-only file system: '.git/hooks/pre-commit'\n", kept, "WS/.git/hooks/pre-commit:"},
		"protected, absolute": {"bash: line 1: WS/.git/hooks/x: Read-only file system\n", kept, "WS/.git/hooks/x:"},
		"denied":              {"PermissionError: [Errno 13] Permission denied: '.env'\n", unread, "WS/.env:"},
		"denied, by grep":     {"grep: ./.env: Permission denied\n", unread, "WS/.env:"},
		"denied, by go":       {"open .env: permission denied\n", unread, "WS/.env:"},
		"denied, by a link":   {"cat: link: Permission denied\n", unread, "WS/link:"},
		"asked":               {"cat: ask: Permission denied\n", "Use Read, which asks", "WS/ask is read (Read(ask))"},
		"of another user":     {"bash: line 1: theirs: Permission denied\n", theirs, "WS/theirs:"},
		"in their directory":  {"touch: cannot touch 'theirs/new': Permission denied\n", theirs, "WS/theirs/new:"},
		"not by the sandbox":  {"bash: ./run.sh: Permission denied\n", "", ""},
		"another's file":      {"cat: /etc/shadow: Permission denied\n", "", ""},
		"in the workspace":    {"bash: line 1: WS/disk/x: Read-only file system\n", "", ""},
		"no file":             {"git@github.com: Permission denied (publickey).\n", "", ""},
		"nothing of it":       {"ok\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fill := strings.NewReplacer("AWAY", away, "WS", ws).Replace
			got := strings.Join(b.notes(fill(tt.output), ws), " ")
			if tt.note == "" && got != "" || !strings.Contains(got, tt.note) || !strings.Contains(got, fill(tt.path)) {
				t.Errorf("%q, want %q of %q", got, tt.note, fill(tt.path))
			}
		})
	}
}
