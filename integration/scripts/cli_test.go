package scripts

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

func TestExitCodes(t *testing.T) {
	home := host.DoctorHome(t)
	host.WriteIn(t, home, "work/a.txt", "a\n")
	broken := filepath.Join(home, "broken.json")
	host.WriteIn(t, home, "broken.json", "{")
	for _, tt := range samples.Of([]struct {
		args []string
		want int
	}{
		{[]string{"version"}, 0},
		{[]string{"call", "Read", `{"file_path":"a.txt"}`}, 0},
		{[]string{"call", "Read", `{"file_path":"b.txt"}`}, 1},
		{[]string{"call", "Read", `{"file_path":"a.txt"}`, "--deny", "Read(a.txt)"}, 1},
		{[]string{"check", "Read", `{"file_path":"a.txt"}`}, 0},
		{[]string{"check", "Read", `{"file_path":"a.txt"}`, "--deny", "Read(a.txt)"}, 1},
		{[]string{"rules", "--settings", broken}, 2},
		{[]string{"undo"}, 0},
		{[]string{"undo", "nothing"}, 1},
		{[]string{"token", "nothing"}, 2},
		{[]string{"history", "show", "nothing"}, 1},
		{[]string{"help", "exit-codes"}, 0},
		{[]string{"completion", "bash"}, 0},
		{[]string{"nothing"}, 2},
		{[]string{"call"}, 2},
		{[]string{"call", "Read", "{}", "--nothing"}, 2},
		{[]string{"version", "more"}, 2},
		{[]string{"--version"}, 0},
		{[]string{"help", "nothing"}, 2},
		{[]string{"help", "token", "add"}, 0},
		{[]string{"completion", "nothing"}, 2},
		{[]string{"history", "--since", "yesterday"}, 2},
		{[]string{"token", "add", "x", "--rights", "all"}, 2},
		{[]string{"token", "add", "a b"}, 2},
		{[]string{"token", "revoke", "nobody"}, 1},
		{[]string{"token", "list"}, 0},
		{[]string{"token", "list", "--tokens", "nothing.json"}, 1},
		{[]string{"http", "--listen", "unix:"}, 2},
		{[]string{"stdio", "--structured", "perhaps"}, 2},
		{[]string{"stdio", "--scope-key", "x=perhaps"}, 2},
		{[]string{"http", "--host", "http://tools.example.com"}, 2},
		{[]string{"http", "--host", "*.example.com"}, 2},
		{[]string{"http", "--host", "bücher.example"}, 2},
		{[]string{"stdio", "--tools", "Nope"}, 2},
		// What a script passes whose variable is not set.
		{[]string{"http", "--listen", "192.0.2.1:0", "--insecure-plain-http", "--token-file", ""}, 2},
		{[]string{"http", "--listen", "192.0.2.1:0", "--insecure-plain-http", "--oauth-scope-prefix", ""}, 1},
		{[]string{"check", "Read", `{"file_path":"a.txt"}`, "--audit-log="}, 2},
		{[]string{"check", "Read", `{"file_path":"a.txt"}`, "--root", "/", "--root", ""}, 2},
		{[]string{"trust", ""}, 2},
		{[]string{"__complete", "install", ""}, 0},
		{[]string{"call", "--tools", "Read,Nope", "Read", `{"file_path":"a.txt"}`}, 2},
		{[]string{"http", "--listen", "127.0.0.1"}, 2},
		{[]string{"http", "--listen", "127.0.0.1:99999"}, 2},
		{[]string{"http", "--listen", "0.0.0.0:0"}, 2},
		{[]string{"http", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem"}, 2},
		{[]string{"http", "--listen", "127.0.0.1:0", "--oauth-issuer", "login"}, 2},
		{[]string{"http", "--listen", "127.0.0.1:0", "--oauth-audience", "x"}, 2},
		{[]string{"http", "--listen", "192.0.2.1:0", "--insecure-plain-http"}, 1}, // an address of another machine
	}, 1) {
		if out, code := host.RunCommand(t, home, tt.args...); code != tt.want {
			t.Errorf("toolhost %s: exit code %d, want %d\n%s", strings.Join(tt.args, " "), code, tt.want, out)
		}
	}
}

// No one is told of an address while another one that is asked for cannot be had, and the exit code says whether it ever could.
func TestAnnouncedTogether(t *testing.T) {
	home := host.DoctorHome(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		flag, value string
		want        int
	}{
		{"--metrics", "none", 2},
		{"--metrics", "0.0.0.0:0", 2},
		{"--metrics", taken.Addr().String(), 1},
		{"--console-listen", "0.0.0.0:0", 2},
		{"--console-listen", taken.Addr().String(), 1},
	} {
		for _, flags := range [][]string{{"stdio"}, {"http", "--listen", "127.0.0.1:0"},
			{"http", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--console"}} {
			flags := append(flags, tt.flag, tt.value)
			out, code := host.RunCommand(t, home, flags...)
			if code != tt.want || strings.Contains(out, "listening on") || strings.Contains(out, "metrics on http") {
				t.Errorf("toolhost %q: exit code %d, want %d and nothing announced\n%s", flags, code, tt.want, out)
			}
		}
	}
}

// What a newcomer gets wrong is answered with what is wrong.
func TestMistakes(t *testing.T) {
	home := host.DoctorHome(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"undo", "nothing"}, "no such change"},
		{[]string{"call", "Bash", "ls"}, "got invalid JSON: ls"},
		{[]string{"call", "Read", `{file_path:"a.txt"}`}, "got invalid JSON"},
		{[]string{"token", "lst"}, "did you mean list?"},
		{[]string{"help", "cal"}, "did you mean call?"},
		{[]string{"call", "Read"}, `call takes TOOL JSON|-|KEY=VALUE..., such as: toolhost call Read '{"file_path"`},
		{[]string{"call", "read", "{}"}, "file_path is missing"},
		{[]string{"rules", "--deny", "Bash("}, "no closing parenthesis"},
		{[]string{"rules", "--deny", "Read([)"}, "guards the literal path"},
	} {
		if out, _ := host.RunCommand(t, home, tt.args...); !strings.Contains(out, tt.want) ||
			strings.Contains(out, "goroutine") {
			t.Errorf("toolhost %s: no %q in\n%s", strings.Join(tt.args, " "), tt.want, out)
		}
	}
}

// Whose environment names no home directory has one all the same: it is not served as a whole, and the rules in it hold.
func TestWithoutHome(t *testing.T) {
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		t.Skip("the user who runs the tests has no home directory: ", err)
	}
	if st, err := os.Stat(u.HomeDir); err != nil || !st.IsDir() {
		t.Skip("the home directory of the user who runs the tests is not there: ", err)
	}
	for _, home := range []string{"", "HOME=", "HOME=relative"} {
		cmd := exec.Command(host.Binary, "call", "Glob", `{"pattern":"none"}`)
		dir := host.TempDir(t)
		cmd.Dir, cmd.Env = u.HomeDir, []string{"XDG_STATE_HOME=" + dir, "XDG_CACHE_HOME=" + dir, home, "PATH=" +
			os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "the whole home directory") {
			t.Errorf("with %q: %v\n%s", home, err, out)
		}
	}
}

// Every command that prints data prints JSON when it is asked to.
func TestJSON(t *testing.T) {
	home := host.DoctorHome(t)
	host.WriteIn(t, home, "work/a.txt", "a\n")
	for _, args := range [][]string{
		{"call", "Write", `{"file_path":"new.txt","content":"x\n"}`}, {"call", "Read", `{"file_path":"missing"}`},
		{"check", "Read", `{"file_path":"a.txt"}`}, {"rules"}, {"tools"}, {"history"}, {"history", "usage"}, {"undo", "--dry-run"}, {"undo", "--yes"}, {"undo", "--yes"}, {"version"}, {"trust", "--list"},
		{"doctor", "--quick"}, {"install", "--list"}, {"token", "list"},
	} {
		cmd := exec.Command(host.Binary, append(args, "--json")...)
		cmd.Dir, cmd.Env = filepath.Join(home, "work"), host.CleanEnv(home)
		out, _ := cmd.Output() // the exit code is not what is asked
		var v any
		if err := json.Unmarshal(out, &v); err != nil || v == nil {
			t.Errorf("toolhost %s --json: %v: %q", strings.Join(args, " "), err, out)
		}
	}
}

func TestManualPages(t *testing.T) {
	home := host.DoctorHome(t)
	if out, code := host.RunCommand(t, home, "man", "pages"); code != 0 {
		t.Fatal(out)
	}
	pages, err := filepath.Glob(filepath.Join(home, "work", "pages", "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff, which reads manual pages, is not here")
	}
	out, err := exec.Command("groff", append([]string{"-man", "-Tascii", "-ww", "-z"}, pages...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// History and undo go by the rules of the workspace a file is in, wherever they are started.
func TestHistoryGoesByTheRulesOfTheWorkspace(t *testing.T) {
	home := host.DoctorHome(t)
	project := filepath.Join(home, "src", "project")
	host.WriteIn(t, home, "src/project/.git/HEAD", "")
	for _, name := range []string{"open.txt", "closed.txt", "linked.txt"} {
		if out, code := host.RunCommand(t, home, "call", "Write", `{"file_path":"`+name+`","content":"one\n"}`,
			"--root", project); code != 0 {
			t.Fatal(out)
		}
	}
	if err := os.Link(filepath.Join(project, "linked.txt"), filepath.Join(project, "secret.txt")); err != nil {
		t.Skip("no hard links here:", err)
	}
	host.WriteIn(t, home, "src/project/.claude/settings.json",
		`{"permissions":{"deny":["Read(closed.txt)","Read(secret.txt)"]}}`)
	out, code := host.RunCommand(t, home, "history")
	if code != 0 || !strings.Contains(out, "open.txt") || strings.Contains(out, "closed.txt") ||
		strings.Contains(out, "linked.txt") {
		t.Errorf("the history lists what the workspace denies, or not what it allows: exit code %d\n%s", code, out)
	}
	out, code = host.RunCommand(t, home, "undo", "--path", project, "--yes")
	if code != 1 || !strings.Contains(out, "removed "+filepath.Join(project, "open.txt")) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for name, there := range map[string]bool{"open.txt": false, "closed.txt": true, "linked.txt": true} {
		if _, err := os.Stat(filepath.Join(project, name)); (err == nil) != there {
			t.Errorf("after the undo %s: %v", name, err)
		}
	}
}
