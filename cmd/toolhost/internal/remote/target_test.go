package remote

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

func TestParse(t *testing.T) {
	const ssh = "ssh -T -a -x -o ClearAllForwardings=yes -o RemoteCommand=none -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=2 "
	for target, want := range map[string]struct{ argv, root string }{
		"ssh://box":                      {ssh + "-- box sh", ""},
		"ssh://me@box:2222/srv/p":        {ssh + "-p 2222 -l me -- box sh", "/srv/p"},
		"ssh://box/~/my%20src":           {ssh + "-- box sh", "~/my src"},
		"ssh://[fe80::1%25eth0]/p":       {ssh + "-- fe80::1%eth0 sh", "/p"},
		"docker://app/src":               {"docker exec -i app sh", "/src"},
		"docker://1000:1000@app":         {"docker exec -i -u 1000:1000 app sh", ""},
		"podman://app/src":               {"podman exec -i app sh", "/src"},
		"k8s://team/app-0":               {"kubectl -n team exec -i app-0 -- sh", ""},
		"k8s://kind@team/app-0:dev/src":  {"kubectl --context kind -n team exec -i app-0 -c dev -- sh", "/src"},
		"wsl://Ubuntu-24.04/home/me":     {"wsl.exe -d Ubuntu-24.04 -- sh", "/home/me"},
		"wsl://me@Ubuntu":                {"wsl.exe -d Ubuntu -u me -- sh", ""},
		"devcontainer:src":               {"devcontainer exec --workspace-folder src sh", ""},
		"devcontainer:":                  {"devcontainer exec --workspace-folder . sh", ""},
		`cmd:sudo -u build`:              {"sudo -u build sh", ""},
		`cmd:docker exec -i 'a b' "c"''`: {"docker exec -i a b c sh", ""},
	} {
		got, err := Parse(target)
		if err != nil || strings.Join(got.Argv, " ") != want.argv || got.Root != want.root {
			t.Errorf("%s: %v %q, root %q", target, err, got.Argv, got.Root)
		}
	}
	for _, target := range []string{
		"", "box", "/srv", "http://box", "ssh://", "ssh:///p", "ssh://-v", "ssh://-l@box", "ssh://box:port", "ssh://box\nx", "ssh://b%00x", "ssh://a b",
		"sandbox://", "sandbox://ns", "sandbox://NS/pool", "sandbox://ns/pool/a/b", "sandbox://ns/pool/", "sandbox://-c@ns/pool", "sandbox://ns/../pool",
		"docker://", "docker://-it/p", "docker:// app", "k8s://ns", "k8s://-n/pod", "k8s://--kubeconfig=x@ns/pod", "k8s://ns/-it", "k8s://ns/pod:-c", "wsl://", "wsl://-e", "cmd:", "cmd:'a",
	} {
		if got, err := Parse(target); err == nil {
			t.Errorf("%q is taken: %q", target, got.Argv)
		}
	}
}

// TestParseSandbox: the pool and the workspace of a target.
func TestParseSandbox(t *testing.T) {
	for target, want := range map[string]string{
		"sandbox://ns/pool":               "sandbox://ns/pool default kubectl -n ns",
		"sandbox://ns/pool/My%20Project":  "sandbox://ns/pool My Project kubectl -n ns",
		"sandbox://aws/c@ns/pool":         "sandbox://aws/c@ns/pool default kubectl --context 'aws/c' -n ns",
		"sandbox://me@kind@ns/my.pool/x":  "",
		"sandbox://kind@ns/my.pool/../x":  "",
		"sandbox://kind@ns/my.pool/x":     "sandbox://kind@ns/my.pool x kubectl --context 'kind' -n ns",
		"sandbox://arn:aws:x@ns/pool/x-1": "sandbox://arn:aws:x@ns/pool x-1 kubectl --context 'arn:aws:x' -n ns",
	} {
		got, err := Parse(target)
		if want == "" != (err != nil) || err == nil && got.Sandbox.pool.Name+" "+got.Sandbox.Workspace+" "+
			got.Sandbox.pool.kubectl() != want {
			t.Errorf("%s: %+v, %v", target, got.Sandbox, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for target, want := range map[string]string{
		"docker://app/src":         "docker exec -i app true",
		`cmd:sh -c 'exec "$@"' ''`: `sh -c 'exec "$@"' '' true`,
	} {
		if got, err := Parse(target); err != nil || got.Check() != want {
			t.Errorf("%s: %v %s", target, err, got.Check())
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":              nil,
		" a  b\t":       {"a", "b"},
		`a 'b c' "d e"`: {"a", "b c", "d e"},
		`a ''`:          {"a", ""},
		`a'b'"c"`:       {"abc"},
	} {
		if got, err := words(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// TestScripts: the scripts are what a plain sh understands, whatever a name holds.
func TestScripts(t *testing.T) {
	l := NewLauncher(Target{Name: "x"}, os.Args[0])
	l.Version, l.Args = "1.0 'x' $(y)", []string{"--root=/a b'c", "--deny=Read($x)"}
	for _, dir := range []string{"", "~/x y", "/x'y"} {
		l.FarDir = dir
		text, err := l.dialScript()
		if err != nil {
			t.Fatal(err)
		}
		home := t.TempDir()
		sh := exec.Command("sh")
		sh.Env, sh.Stdin = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, strings.NewReader(text)
		out, err := sh.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), needMark) {
			t.Errorf("--far-dir %q: %v %s", dir, err, out)
		}
	}
}

// runDial runs the script that starts the program in a shell. What follows the script in its input is input.
func runDial(t *testing.T, shell string, l *Launcher, input string) string {
	t.Helper()
	text, err := l.dialScript()
	if err != nil {
		t.Fatal(err)
	}
	sh := exec.Command(shell)
	sh.Env, sh.Stdin = []string{"PATH=" + os.Getenv("PATH")}, strings.NewReader(text+input)
	out, err := sh.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Skip(err)
	}
	return string(out)
}

// putProgram puts a program in the place where the script looks for it, and returns that.
func putProgram(t *testing.T, l *Launcher, text string) string {
	t.Helper()
	sum, err := l.sum()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(l.FarDir, "program", l.Version+"-"+sum[:12])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "toolhost"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestScriptIsRead: a shell that reads its input byte by byte leaves nothing of the script to the program.
func TestScriptIsRead(t *testing.T) {
	l := NewLauncher(Target{Name: "x"}, os.Args[0])
	l.Version, l.FarDir = "1.0", filepath.Join(t.TempDir(), "far")
	putProgram(t, l, "#!/bin/sh\nexec cat\n")
	if got := runDial(t, "bash", l, "hello\n"); got != "hello\n" {
		t.Errorf("the program read %q", got)
	}
}

// TestSettingsAreSent: settings are not among the arguments, and may be longer than those can be.
func TestSettingsAreSent(t *testing.T) {
	l := NewLauncher(Target{Name: "x"}, os.Args[0])
	l.Version, l.FarDir = "1.0", filepath.Join(t.TempDir(), "far")
	sent := []string{strings.Repeat("QUJD", 1<<16), "e30="}
	l.Settings = [][]byte{[]byte(strings.Repeat("ABC", 1<<16)), []byte("{}")}
	dir := putProgram(t, l, "#!/bin/sh\nfor a; do echo \"$a\"; done; exec cat <&3\n")
	for _, shell := range []string{"sh", "bash"} {
		arguments, settings, _ := strings.Cut(runDial(t, shell, l, ""), "--settings-from=3\n")
		if arguments != "dial\n--state-dir="+l.FarDir+"\n" || settings != strings.Join(sent, "\n")+"\n" {
			t.Errorf("%s: arguments %q, settings of %d bytes", shell, arguments, len(settings))
		}
	}
	if err := os.Remove(filepath.Join(dir, "toolhost")); err != nil {
		t.Fatal(err)
	}
	if got := runDial(t, "sh", l, ""); !strings.HasPrefix(got, needMark) {
		t.Errorf("without the program: %.100q", got)
	}
}

// TestKilledLauncher: what a launcher printed is not the reason of its end if it was killed here, unless it is known.
func TestKilledLauncher(t *testing.T) {
	testenv.NotShort(t, "waits until a process is killed")
	for said, want := range map[string]string{"Welcome!": "did nothing",
		"Host key verification failed.": "the host key is not known"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			p, err := launch(ctx, Target{Name: "x", Argv: []string{"sh", "-c",
				"trap '' TERM HUP; echo '" + said + "' >&2; echo; exec sleep 60", "sh"}}, func() (string, error) { return "", nil })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.ReadByte(); err != nil { // it has printed
				t.Fatal(err)
			}
			cancel(errors.New("it did nothing"))
			if _, _, err := p.await(ctx, greetingMark); err == nil || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}

// TestSharedDirectory: a program that another user there could have put in its place is not started.
func TestSharedDirectory(t *testing.T) {
	testenv.NotShort(t, "starts many shells")
	const another = 12345
	chown := func(path string) {
		if os.Getuid() != 0 {
			t.Skip("only root gives files to another user")
		}
		if err := os.Lchown(path, another, another); err != nil {
			t.Fatal(err)
		}
	}
	chmod := func(mode os.FileMode) func(string) {
		return func(path string) {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	link := func(path string) {
		if err := errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(string)
		refuse string
	}{
		"own":               {chmod(0o755), ""},
		"own link":          {link, ""},
		"another's":         {chown, "belongs to another user"},
		"another's link":    {func(path string) { link(path); chown(path) }, "belongs to another user"},
		"link to another's": {func(path string) { link(path); chown(path + ".real") }, "belongs to another user"},
		"for the group":     {chmod(0o775), "other users there can replace"},
		"for all":           {chmod(0o1777), "other users there can replace"},
	} {
		for _, within := range []string{"", "program", "program/*", "program/*/toolhost"} {
			t.Run(name+"/"+within, func(t *testing.T) {
				if within != "" && name == "link to another's" {
					t.Skip("a link in a directory of the user is the user's choice")
				}
				l := NewLauncher(Target{Name: "x"}, os.Args[0])
				l.Version, l.FarDir = "1.0", filepath.Join(t.TempDir(), "far")
				putProgram(t, l, "#!/bin/sh\necho started\n")
				paths, err := filepath.Glob(filepath.Join(l.FarDir, within))
				if err != nil || len(paths) != 1 {
					t.Fatal(paths, err)
				}
				c.change(paths[0])
				got := runDial(t, "sh", l, "")
				if c.refuse == "" && got != "started\n" || c.refuse != "" &&
					(!strings.HasPrefix(got, FailMark) || !strings.Contains(got, c.refuse)) {
					t.Errorf("%s", got)
				}
			})
		}
	}
}

// TestHalfUpload: a program of which a part arrived is not put in its place, and is sent again.
func TestHalfUpload(t *testing.T) {
	noise := make([]byte, 300_000)
	_, _ = rand.Read(noise) // never fails
	program := filepath.Join(t.TempDir(), "program")
	text := "#!/bin/sh\nexit 0\n# " + base64.StdEncoding.EncodeToString(noise) + "\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	l := NewLauncher(Target{Name: "x", Argv: []string{"sh", "-c", "dd bs=1 count=100000 2>/dev/null | sh"}}, program)
	l.Version, l.FarDir = "1.0", filepath.Join(t.TempDir(), "far")
	found := func() string {
		files, _ := filepath.Glob(filepath.Join(l.FarDir, "program", "*", "*"))
		hidden, _ := filepath.Glob(filepath.Join(l.FarDir, "program", "*", ".*"))
		return strings.Join(append(files, hidden...), " ")
	}
	err := l.bring(t.Context(), "Linux x86_64", func() {})
	if refusal := (Refusal{}); !errors.As(err, &refusal) || found() != "" {
		t.Errorf("half of it: %v; there is %q", err, found())
	}
	l.Argv = []string{"sh"}
	if err := l.bring(t.Context(), "Linux x86_64", func() {}); err != nil || !strings.HasSuffix(found(), "/toolhost") {
		t.Errorf("again: %v; there is %q", err, found())
	}
}

// TestSystems: what the far side calls its system leads to no other file here.
func TestSystems(t *testing.T) {
	l := NewLauncher(Target{Name: "x"}, "")
	for system, want := range map[string]string{
		"Linux mips64\n": "toolhost__linux_mips64.tar.gz", "../../x y": "--binary", "linux ../x": "--binary", "": "--binary",
	} {
		if file, _, err := l.program(system); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v", system, file, err)
		}
	}
}

// TestUnpack: the program for another system comes out of an archive whose checksum is known.
func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "toolhost_1.0_linux_arm64.tar.gz")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"README.md": "read", "toolhost": "program"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)),
			Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	z.Close()
	f.Close()
	if _, _, err := unpack(archive); err == nil {
		t.Error("it was unpacked without checksums.txt")
	}
	sum, err := checksum(archive)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "checksums.txt")
	for text, ok := range map[string]bool{
		sum + "  " + filepath.Base(archive) + "\n":                     true,
		strings.Repeat("0", 64) + "  " + filepath.Base(archive) + "\n": false,
		sum + "  another.tar.gz\n":                                     false,
	} {
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, done, err := unpack(archive)
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if raw, _ := os.ReadFile(file); ok && string(raw) != "program" {
			t.Errorf("it holds %q", raw)
		}
		done()
	}
}

// TestProgramGone: a program that cannot be read any more is the reason of the failure, at once.
func TestProgramGone(t *testing.T) {
	l := NewLauncher(Target{Name: "x", Argv: []string{"sh"}}, "")
	p, err := launch(t.Context(), l.Target, func() (string, error) { return "cat >/dev/null\n", nil })
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := l.send(t.Context(), p, filepath.Join(t.TempDir(), "gone"), false, func() {}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error: %v", err)
	}
}
