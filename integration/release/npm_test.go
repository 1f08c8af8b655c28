//go:build slow

package release

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// packageVersion is the version of packages that tests make.
const packageVersion = "1.2.3"

// packNpm packs the npm packages of this machine around the binary, and returns where they are.
func packNpm(t testing.TB) string {
	t.Helper()
	for _, program := range []string{"npm", "node", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	out := host.TempDir(t)
	if said, err := exec.Command("../../.release/npm/pack", packageVersion, out,
		host.Binary).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// A npmUser runs npm and what it has installed, with a home of its own.
type npmUser struct {
	t        *testing.T
	dir      string
	registry string
}

func (u npmUser) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(u.t.Context(), program, args...)
	cmd.Dir = u.dir
	cmd.Env = append(host.CleanEnv(u.dir), "npm_config_registry="+u.registry, "npm_config_update_notifier=false",
		"npm_config_fund=false", "npm_config_audit=false")
	return cmd
}

// run returns what a command prints and how it exits.
func (u npmUser) run(program string, args ...string) (out string, code int) {
	u.t.Helper()
	cmd := u.command(program, args...)
	said, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		u.t.Fatal(err)
	}
	return string(said), cmd.ProcessState.ExitCode()
}

// TestNpm packs the npm packages, installs them as users do, and runs what was installed.
func TestNpm(t *testing.T) {
	t.Parallel()
	packed := packNpm(t)
	want, code := npmUser{t: t, dir: host.TempDir(t)}.run(host.Binary, "version")
	if code != 0 {
		t.Fatal(want)
	}
	platform := nodePlatform(t)

	t.Run("the file by npx, without a registry", func(t *testing.T) {
		u := npmUser{t, host.TempDir(t), host.Nowhere}
		file := filepath.Join(packed, "toolhost-"+packageVersion+".tgz")
		host.Must(t, os.Symlink(file, filepath.Join(u.dir, filepath.Base(file))))
		if out, code := u.run("npx", "--yes", "./"+filepath.Base(file), "version"); code != 0 || out != want {
			t.Errorf("exit code %d: %q, want %q", code, out, want)
		}
	})
	t.Run("from a registry", func(t *testing.T) {
		registry := newRegistry(t, filepath.Join(packed, "registry"))
		u := npmUser{t, host.TempDir(t), registry.URL}
		if out, code := u.run("npm", "install", "--global", "--prefix", u.dir, "toolhost"); code != 0 {
			t.Fatal(out)
		}
		if n := registry.files(); n != 2 {
			t.Errorf("%d packages were fetched, 2 are expected: toolhost and the one of this platform", n)
		}
		installed := filepath.Join(u.dir, "bin", "toolhost")
		if out, code := u.run(installed, "version"); code != 0 || out != want {
			t.Errorf("exit code %d: %q, want %q", code, out, want)
		}
		_, wantCode := u.run(host.Binary, "call", "--none")
		if _, code := u.run(installed, "call", "--none"); code != wantCode || code == 0 {
			t.Errorf("exit code %d, that of the program is %d", code, wantCode)
		}
		u.serve(installed)
	})
	t.Run("without optional packages", func(t *testing.T) {
		u := npmUser{t, host.TempDir(t), newRegistry(t, filepath.Join(packed, "registry")).URL}
		if out, code := u.run("npm", "install", "--omit=optional", "toolhost"); code != 0 {
			t.Fatal(out)
		}
		out, code := u.run(filepath.Join("node_modules", ".bin", "toolhost"), "version")
		if code != 1 || !strings.Contains(out, "/"+platform+", which holds the program, is not installed") ||
			!strings.Contains(out, "--include=optional") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	})
	t.Run("made on another system", func(t *testing.T) {
		u := npmUser{t: t, dir: host.TempDir(t)}
		for _, name := range []string{"toolhost.js", "package.json"} {
			host.Must(t, os.WriteFile(filepath.Join(u.dir, name), readRelease(t, ".release/npm/"+name), 0o600))
		}
		other := filepath.Join(u.dir, "node_modules", "@toolhost", "win32-arm64")
		host.Must(t, os.MkdirAll(other, 0o700))
		host.Must(t, os.WriteFile(filepath.Join(other, "toolhost.exe"), nil, 0o700))
		if out, code := u.run("node", "toolhost.js"); code != 1 ||
			!strings.Contains(out, "/win32-arm64 is: node_modules was made on another system") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	})
}

// serve has an installed program serve over stdio, and ends it as clients do: by the end of its input, and by SIGTERM.
func (u npmUser) serve(installed string) {
	u.t.Helper()
	host.Must(u.t, os.WriteFile(filepath.Join(u.dir, "a.txt"), []byte("first line\n"), 0o600))
	for _, terminate := range []bool{false, true} {
		cmd := u.command(installed, "stdio", "--root", u.dir)
		conn, err := client.Stdio(u.t.Context(), client.Modern, cmd)
		if err != nil {
			u.t.Fatal(err)
		}
		if r, err := conn.Call(u.t.Context(), "Read", `{"file_path":"a.txt"}`); err != nil ||
			!strings.Contains(r.Text(), "first line") {
			u.t.Errorf("Read: %+v, %v", r, err)
		}
		if terminate {
			host.Must(u.t, cmd.Process.Signal(syscall.SIGTERM))
		}
		if err := conn.Close(); err != nil && !terminate {
			u.t.Errorf("after the end of its input: %v", err)
		}
	}
}

// nodePlatform is the name of this platform in the names of packages.
func nodePlatform(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("node", "-p", `process.platform + "-" + process.arch`).Output()
	host.Must(t, err)
	return strings.TrimSpace(string(out))
}

// A registry is as much of an npm registry as an installation asks for.
type registry struct {
	*httptest.Server
	mu      sync.Mutex
	fetched map[string]bool
}

func newRegistry(t *testing.T, dir string) *registry {
	t.Helper()
	r := &registry{fetched: map[string]bool{}}
	documents := map[string]any{}
	mux := http.NewServeMux()
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	host.Must(t, err)
	for _, file := range files {
		manifest, integrity := readPackage(t, file)
		name, version := manifest["name"].(string), manifest["version"].(string)
		manifest["dist"] = map[string]string{"tarball": r.URL + "/files/" + filepath.Base(file), "integrity": integrity}
		documents[name] = map[string]any{"name": name, "dist-tags": map[string]string{"latest": version},
			"versions": map[string]any{version: manifest}}
	}
	mux.HandleFunc("/files/", func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.fetched[req.URL.Path] = true
		r.mu.Unlock()
		http.ServeFile(w, req, filepath.Join(dir, path.Base(req.URL.Path)))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		document, ok := documents[strings.TrimPrefix(req.URL.Path, "/")]
		if !ok {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document) // the client is gone
	})
	return r
}

// files returns how many packages were fetched.
func (r *registry) files() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.fetched)
}

// readPackage returns the package.json of a packed package, and the digest of its file.
func readPackage(t *testing.T, file string) (manifest map[string]any, integrity string) {
	t.Helper()
	f, err := os.Open(file)
	host.Must(t, err)
	defer f.Close()
	digest := sha512.New()
	zipped, err := gzip.NewReader(io.TeeReader(f, digest))
	host.Must(t, err)
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		host.Must(t, err)
		if h.Name == "package/package.json" {
			host.Must(t, json.NewDecoder(r).Decode(&manifest))
		}
	}
	_, err = io.Copy(digest, f)
	host.Must(t, err)
	return manifest, fmt.Sprint("sha512-", base64.StdEncoding.EncodeToString(digest.Sum(nil)))
}

// TestTap: the script commits what goreleaser wrote to the repositories that Homebrew and Scoop read, once.
func TestTap(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("releases are made on Linux")
	}
	base, dist := host.TempDir(t), host.TempDir(t)
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, repository := range []string{"homebrew-tap", "scoop-bucket"} {
		git("init", "--quiet", "--bare", filepath.Join(base, repository))
	}
	for name, text := range map[string]string{"homebrew/Casks/toolhost.rb": "cask\n", "scoop/toolhost.json": "{}\n"} {
		host.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dist, name)), 0o700))
		host.Must(t, os.WriteFile(filepath.Join(dist, name), []byte(text), 0o600))
	}
	for range 2 { // the second time there is nothing to do
		cmd := exec.Command("../../.release/tap", "v1.2.3", dist)
		cmd.Env = append(os.Environ(), "TAP_BASE="+base)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for repository, file := range map[string]string{"homebrew-tap": "Casks/toolhost.rb",
		"scoop-bucket": "toolhost.json"} {
		got := git("-C", filepath.Join(base, repository), "log", "--all", "--format=%s", "--name-only")
		if want := "toolhost v1.2.3\n\n" + file + "\n"; got != want {
			t.Errorf("%s: %q, want %q", repository, got, want)
		}
	}
}
