//go:build slow && unix

package attack

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// auditCanary is in the record of a call, which no later call may show.
const auditCanary = "AUDITCANARY77e1"

// veiledName begins a command with f set to a name that its text does not hold.
func veiledName(name string) string {
	return "f=$(base64 -d <<< " + base64.StdEncoding.EncodeToString([]byte(name)) + "); "
}

// TestAttackAuditLog attacks an audit log that lies in the root: it is not read, written, replaced or led elsewhere, and neither are
// the files that it was rotated to.
func TestAttackAuditLog(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	for _, user := range []int{0, ordinaryUser} {
		if user != 0 && os.Geteuid() != 0 {
			continue
		}
		t.Run(fmt.Sprint(user), func(t *testing.T) { attackAuditLog(t, controlBackend{user: user}) })
	}
	t.Run("uncontained", func(t *testing.T) { attackAuditLog(t, controlBackend{plain: true}) })
}

func attackAuditLog(t *testing.T, b controlBackend) {
	w := controlLayout{}.put(t)
	bashrc := filepath.Join(w.home, ".bashrc")
	host.Must(t, os.WriteFile(bashrc, []byte("# rc\n"), 0o644))
	flags := []string{"--root", w.ws, "--audit-log", filepath.Join(w.ws, "logs", "audit.jsonl"),
		"--audit-max-size", "64KiB"}
	if b.plain {
		host.Must(t, os.WriteFile(filepath.Join(w.root, "uncontained.json"),
			[]byte(`{"sandbox":{"enabled":false,"onUnavailable":"allow"}}`), 0o644))
		flags = append(flags, "--settings", filepath.Join(w.root, "uncontained.json"))
	}
	if b.user != 0 {
		w.giveTo(t, b.user)
	}
	w.through = b.through
	h := w.host(t, host.StdioModern, flags...)
	h.call(t, "Read", `{"file_path":"`+auditCanary+`"}`, "canary")
	n := 0
	attack := func(log string) {
		for _, c := range auditAttacks(log, b.plain) {
			n++
			if said := h.call(t, c[0], c[1], fmt.Sprint(n)); strings.Contains(said.raw, auditCanary) ||
				strings.Contains(said.raw, "duration_ms") {
				t.Errorf("%s %s: the log is shown: %s", c[0], c[1], host.Clip(said.text, 600))
			}
			for _, name := range []string{"logs", "logs/audit.jsonl"} {
				if info, err := os.Lstat(filepath.Join(w.ws, name)); err != nil || info.Mode()&os.ModeSymlink != 0 {
					t.Fatalf("%s %s: %s: %v, %v", c[0], c[1], name, info, err)
				}
			}
			text, err := os.ReadFile(filepath.Join(w.ws, log))
			for line := range strings.Lines(string(text)) {
				if !strings.HasPrefix(line, `{"time":"2`) {
					err = errors.New("this is no record: " + host.Clip(line, 100))
				}
			}
			if err != nil || len(text) == 0 {
				t.Fatalf("%s %s: %s holds %d bytes, %v", c[0], c[1], log, len(text), err)
			}
		}
	}
	attack("logs/audit.jsonl")
	for i := 0; len(glob(t, filepath.Join(w.ws, "logs", "audit.jsonl.*"))) < 2; i++ {
		h.call(t, "Bash", fmt.Sprintf(`{"command":"true %s %s"}`, auditCanary, strings.Repeat("x", 4000)),
			fmt.Sprint("fill", i))
	}
	attack("logs/audit.jsonl.1")
	attack("logs/audit.jsonl.2")
	if said := h.call(t, "Bash", `{"command":"cd logs && echo a > beside.txt && mv beside.txt b2.txt && cat b2.txt"}`,
		"beside"); !said.ok {
		t.Errorf("honest work beside the log: %s", said.text)
	}
	if text, err := os.ReadFile(bashrc); err != nil || string(text) != "# rc\n" {
		t.Errorf("~/.bashrc holds %q, %v", text, err)
	}
	w.before = w.snapshot()
	host.Must(t, h.Stop())
}

func quotedText(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return string(raw)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	host.Must(t, err)
	return names
}

func auditAttacks(log string, plain bool) (calls [][2]string) {
	for _, c := range [][2]string{
		{"Read", `{"file_path":%q}`}, {"Read", `{"file_path":"./other/../%s"}`}, {"Write", `{"file_path":%q,"content":"forged"}`},
		{"Edit", `{"file_path":%q,"old_string":"time","new_string":"forged"}`},
		{"Grep", `{"pattern":"duration","output_mode":"content","path":%q}`},
	} {
		calls = append(calls, [2]string{c[0], strings.Replace(strings.Replace(c[1], "%q", `"`+log+`"`, 1), "%s", log, 1)})
	}
	calls = append(calls, [2]string{"Grep", `{"pattern":"AUDITCANARY|duration","output_mode":"content"}`},
		[2]string{"Grep", `{"pattern":"duration","output_mode":"content","path":"logs"}`})
	for _, command := range []string{
		"cat %s", "cp %s copy; cat copy", "ln %s hard && cat hard", "ln -s %s soft && cat soft; rm -f soft", "echo forged > %s", "echo forged >> %s", "rm -f %s", "mv %s gone",
		"ln -sf ~/.bashrc %s", "mv logs gone", "mv logs gone; mkdir logs; ln -s ~/.bashrc %s", "rm -rf logs", "truncate -s 0 %s", "sed -i s/time/forged/ %s", "tar cf - logs | tar xOf -", "exec 3<>%s; cat <&3; echo forged >&3",
		"grep -r duration logs", "mv -T other logs", "tail -n 3 %s; head -c 100 %s",
	} {
		name, before := log, ""
		if !plain {
			name, before = `"$f"`, veiledName(log)
		} else if strings.Contains(command, "-r") || strings.Contains(command, "tar") {
			continue // which no text tells
		}
		calls = append(calls, [2]string{"Bash", `{"command":` + quotedText(before+strings.ReplaceAll(command, "%s", name)) + `,"timeout":2000}`})
	}
	return calls
}
