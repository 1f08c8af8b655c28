package scripts

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A stumble is a command of a person that does not do what was meant, and the remedy that its output names.
type stumble struct {
	before string // commands that lead there
	typed  string // what the person types, in a shell
	remedy string // what the output names, and what is run next
	pasted string // the remedy as it is run; "": as it is named
	again  bool   // the command works afterwards
}

// stumbles are typed in a project, each in a home directory of its own. {port} is a port in use, {free} one that is not, {dir} the
// project, and {bin} a directory with toolhost and a shell alone.
var stumbles = []stumble{
	{typed: "toolhost histroy", remedy: "toolhost --help"},
	{typed: "toolhost call Glob pattern=* --rot .", remedy: "toolhost call --help"},
	{typed: "toolhost call Glob", remedy: `toolhost call Read '{"file_path":"README.md"}'`},
	{typed: "toolhost tools --root nowhere", remedy: "make the directory", pasted: "mkdir nowhere", again: true},
	{typed: "toolhost http --listen {free}", remedy: "127.0.0.1:{free}", pasted: "toolhost http --listen 127.0.0.1:{free}"},
	{typed: "toolhost http --listen localhost", remedy: "127.0.0.1:8377", pasted: "toolhost http --listen 127.0.0.1:{free}"},
	{typed: "toolhost http --listen 127.0.0.1:{port}", remedy: "toolhost status"},
	{typed: "toolhost http --listen 0.0.0.0:{free}", remedy: "--insecure-plain-http", pasted: "toolhost http --listen 0.0.0.0:{free} --insecure-plain-http"},
	{typed: "toolhost http --tokens tokens.json", remedy: "toolhost token add NAME --tokens {dir}/tokens.json", pasted: "toolhost token add me --tokens tokens.json"},
	{typed: "toolhost token revoke me", remedy: "toolhost token add me", again: true},
	{typed: "toolhost console", remedy: "toolhost http --console", pasted: "toolhost http --console --listen 127.0.0.1:{free}"},
	{typed: "toolhost history", remedy: ""},
	{typed: "toolhost log", remedy: ""},
	{typed: "toolhost agent list", remedy: ""},
	{typed: "toolhost diff 3k9x2m", remedy: "toolhost history"},
	{before: "toolhost call Write file_path=new.txt content=x", typed: "toolhost undo </dev/null", remedy: "--dry-run", pasted: "toolhost undo --dry-run"},
	{before: "toolhost deny 'Read(a.txt)'", typed: "toolhost check Read file_path=a.txt", remedy: "toolhost rules --remove 'Read(a.txt)' --root {dir}", again: true},
	{
		before: `mkdir .claude; echo '{"permissions":{"deny":["Read(a.txt)"]}}' >.claude/settings.json`,
		typed:  "toolhost check Read file_path=a.txt",
		remedy: "edit {dir}/.claude/settings.json:1",
		pasted: "sed -i 1d .claude/settings.json; echo '{}' >.claude/settings.json", again: true,
	},
	{typed: "toolhost check Read file_path=a.txt --deny 'Read(a.txt)'", remedy: "start the host without --deny", pasted: "toolhost check Read file_path=a.txt"},
	{
		before: `mkdir -p .claude ../config/toolhost; echo '{"permissions":{"defaultMode":"default"}}' >../config/toolhost/toolhost.json`,
		typed:  "toolhost check Write file_path=b.txt content=x",
		remedy: "toolhost allow 'Edit(/{dir}/b.txt)' --root {dir}", again: true,
	},
	{
		before: `mkdir .claude; echo '{"permissions":{"allow":["Bash(make:*)"]}}' >.claude/settings.json`,
		typed:  "toolhost rules",
		remedy: "toolhost trust", pasted: "toolhost trust --yes",
	},
	{
		before: `mkdir .claude; echo '{"permissions":{"allow":["Bash(make:*)"]}}' >.claude/settings.json`,
		typed:  "toolhost trust </dev/null",
		remedy: "--yes", pasted: "toolhost trust --yes",
	},
	{typed: "toolhost trust --list", remedy: ""},
	{typed: "toolhost credential list", remedy: ""},
	{typed: "toolhost call Bash 'command=curl -sS http://collector.example'", remedy: "toolhost allow-host collector.example"},
	{typed: "toolhost install claude-code", remedy: "--force", pasted: "toolhost install claude-code --force"},
	{typed: "toolhost install claude-desktop --force", remedy: "--root DIR", pasted: "toolhost install claude-desktop --force --root ."},
	{typed: "toolhost install claud-code", remedy: `"claude-code"`, pasted: "toolhost install claude-code --force"},
	{
		typed:  "toolhost call Edit file_path=a.txt old_string=a new_string=b",
		remedy: "--session NAME",
		pasted: "for i in 1 2; do toolhost call Edit file_path=a.txt old_string=a new_string=b --session s; done",
	},
	{typed: "toolhost uninstall", remedy: "toolhost uninstall claude-code"},
	{typed: "toolhost profile docker", remedy: "seccomp", pasted: "toolhost profile seccomp"},
	{typed: "toolhost history purge </dev/null", remedy: "--yes", pasted: "toolhost history purge --yes"},
	{typed: "toolhost allow-host localhost:2375", remedy: "never reach", pasted: "toolhost allow-host localhost:5432"},
	{
		typed:  "toolhost mcp add memory -e A=b true",
		remedy: "give the flags of toolhost before the name memory", pasted: "toolhost mcp add -e A=b memory true",
	},
	{
		typed:  "toolhost mcp add --mcp-config servers.json memory no-such-program",
		remedy: "toolhost mcp --mcp-config {dir}/servers.json remove memory",
	},
	{typed: "toolhost mcp list", remedy: "toolhost mcp add NAME COMMAND", pasted: "toolhost mcp add memory true"},
	{typed: "PATH={bin} toolhost doctor --quick", remedy: "install git 2.38 or later", pasted: "git --version"},
	{before: "touch ../state", typed: "toolhost doctor --quick", remedy: "--state-dir", pasted: "toolhost doctor --quick --state-dir ../other"},
	{before: "mkdir -p ../state/toolhost; echo >../state/toolhost/token", typed: "toolhost http --listen 127.0.0.1:{free}", remedy: "--token-file", pasted: "toolhost http --listen 127.0.0.1:{free} --token-file token"},
	{typed: "toolhost deny 'Bash()'", remedy: "write Bash for every call", pasted: "toolhost deny Bash"},
	{
		before: "mkdir -p ../.cursor; echo '{' >../.cursor/mcp.json", typed: "toolhost install cursor --root .",
		remedy: "correct the file", pasted: "echo '{}' >../.cursor/mcp.json", again: true,
	},
	{before: "echo '{' >a.json", typed: "toolhost rules --settings a.json", remedy: "a.json:", pasted: "echo '{}' >a.json", again: true},
}

// TestRemedies types what newcomers type. The output is compared with testdata/remedies.txt, has no line of a log, names the remedy,
// and the remedy works.
func TestRemedies(t *testing.T) {
	if !host.Contained(t) {
		t.Skip("the texts are those of a machine that can contain commands")
	}
	said, step := make([]string, len(stumbles)), samples.Step(1)
	if *host.Update {
		step = 1
	}
	t.Run("stumbles", func(t *testing.T) {
		for i := 0; i < len(stumbles); i += step {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				said[i] = stumbles[i].stumble(t)
			})
		}
	})
	golden := filepath.Join("testdata", "remedies.txt")
	if *host.Update {
		host.Must(t, os.WriteFile(golden, []byte(strings.Join(said, "\n")), 0o644))
	}
	want := regexp.MustCompile(`(?m)^\$ `).Split(host.Get(t, golden), -1)[1:]
	if len(want) != len(stumbles) {
		t.Fatalf("%s has %d commands, want %d", golden, len(want), len(stumbles))
	}
	for i := 0; i < len(said); i += step {
		if diff := cmp.Diff("$ "+strings.TrimSpace(want[i]), strings.TrimSpace(said[i])); diff != "" {
			t.Errorf("%s (-want +got)\n%s", golden, diff)
		}
	}
}

func (s stumble) stumble(t *testing.T) string {
	home := host.TempDir(t)
	project := filepath.Join(home, "project")
	host.Must(t, os.MkdirAll(filepath.Join(home, "bin"), 0o755))
	host.Must(t, os.Mkdir(project, 0o755))
	host.Must(t, os.WriteFile(filepath.Join(project, "a.txt"), []byte("a\n"), 0o644))
	host.Must(t, os.WriteFile(filepath.Join(project, "README.md"), []byte("# a\n"), 0o644))
	for name, program := range map[string]string{"toolhost": host.Binary, "sh": "/bin/sh"} {
		host.Must(t, os.Symlink(program, filepath.Join(home, "bin", name)))
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	defer taken.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	_, used, _ := net.SplitHostPort(taken.Addr().String())
	_, free, _ := net.SplitHostPort(other.Addr().String())
	host.Must(t, other.Close())
	fill := strings.NewReplacer("{port}", used, "{free}", free, "{dir}", project, "{bin}",
		filepath.Join(home, "bin")).Replace
	shell := func(text string) (string, bool) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec "+fill(text))
		if !strings.Contains(text, "toolhost http") {
			cmd.Args[2] = fill(text)
		}
		cmd.Dir = project
		cmd.Env = append(host.CleanEnv(home), "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"))
		return untilListening(t, cmd)
	}
	if s.before != "" {
		if out, ok := shell(s.before); !ok {
			t.Fatalf("$ %s\n%s", s.before, out)
		}
	}
	out, _ := shell(s.typed)
	switch remedy := fill(s.remedy); {
	case strings.Contains(out, "level=") || strings.Contains(out, `"level"`):
		t.Errorf("$ %s\na line of a log:\n%s", s.typed, out)
	case !strings.Contains(out, remedy):
		t.Errorf("$ %s\n%q is not named:\n%s", s.typed, remedy, out)
	case s.remedy == "":
	default:
		pasted := s.pasted
		if pasted == "" {
			pasted = s.remedy
		}
		if done, ok := shell(pasted); !ok {
			t.Errorf("the remedy %s fails:\n%s", pasted, done)
		}
	}
	if s.again {
		if done, ok := shell(s.typed); !ok {
			t.Errorf("after the remedy:\n%s", done)
		}
	}
	out = strings.NewReplacer(home, "/home/me", used, "8377", free, "8377").Replace(out)
	out = regexp.MustCompile(`[0-9a-f]{16}|[\d.]+ MiB|PATH .*|curl: .*|git version .*`).ReplaceAllString(out, "…")
	return fmt.Sprintf("$ %s\n%s", strings.NewReplacer("{port}", "8377", "{free}", "8377", "{dir}", "/home/me/project",
		"{bin}", "/home/me/bin").Replace(s.typed), out)
}

// untilListening runs a command until it ends, or listens. It returns what was printed, and whether it did well.
func untilListening(t *testing.T, cmd *exec.Cmd) (string, bool) {
	t.Helper()
	out, in, err := os.Pipe()
	host.Must(t, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = in, in
	host.Must(t, cmd.Start())
	host.Must(t, in.Close())
	var printed strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&printed, lines.Text())
		if strings.HasPrefix(lines.Text(), "listening on ") {
			host.Must(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			return printed.String(), true
		}
	}
	return printed.String(), cmd.Wait() == nil
}
