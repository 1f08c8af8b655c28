package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Person is somebody with a home directory who runs toolhost from a shell in a project.
type Person struct{ Home, Project string }

// NewPerson makes the home of a person, with an odd name for the project.
func NewPerson(t testing.TB) Person {
	t.Helper()
	p := Person{Home: BusyDir(t)} // the host of a client that has ended may still write its state
	p.Project = filepath.Join(p.Home, `my "best" projöct`)
	if err := os.Mkdir(p.Project, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// Run runs a program in the project; it returns what was printed and whether the program succeeded.
func (p Person) Run(t testing.TB, env []string, program string, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = p.Project
	cmd.Env = append(CleanEnv(p.Home), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// Settings writes the user's settings.
func (p Person) Settings(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(p.Home, "config/toolhost/toolhost.json")
	Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	Must(t, os.WriteFile(file, []byte(text), 0o600))
}

// WriteIn writes a file below a home that only its owner may read.
func WriteIn(t *testing.T, home, name, content string) {
	t.Helper()
	path := filepath.Join(home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// QuotedJSON returns s as a JSON string.
func QuotedJSON(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// A Finding is a line of toolhost doctor.
type Finding struct{ Level, About, Text, Remedy string }

// Doctor runs toolhost doctor and returns its lines and exit code.
func Doctor(t *testing.T, home string, flags ...string) ([]Finding, int) {
	t.Helper()
	cmd := exec.Command(Binary, append([]string{"doctor", "--json"}, flags...)...)
	cmd.Dir, cmd.Env = filepath.Join(home, "work"), append(CleanEnv(home), "TMPDIR="+filepath.Join(home, "tmp"))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	var all []Finding
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v\n%s%s", err, out, &complaint)
	}
	return all, code
}

// RunCommand runs the binary without input and returns what it prints, and its exit code.
func RunCommand(t *testing.T, home string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(Binary, args...)
	cmd.Dir, cmd.Env = filepath.Join(home, "work"), CleanEnv(home)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// About returns the findings about one thing.
func About(all []Finding, what string) (found []Finding) {
	for _, f := range all {
		if f.About == what {
			found = append(found, f)
		}
	}
	return found
}

// DoctorHome is a home directory with a workspace "work".
func DoctorHome(t *testing.T) string {
	t.Helper()
	home := TempDir(t)
	for _, name := range []string{"work", "tmp"} {
		if err := os.Mkdir(filepath.Join(home, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// Shell runs a script as the person at the machine does.
func Shell(t *testing.T, home, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, CleanEnv(home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}
