package builtin

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/builtin/internal/shell"

	"github.com/toolhost/toolhost/guard"
)

func TestClampTimeout(t *testing.T) {
	limits := ShellLimits{Timeout: 2 * time.Minute, MaxTimeout: 10 * time.Minute}
	tests := []struct {
		millis int
		want   time.Duration
		says   string
	}{
		{0, 2 * time.Minute, ""},
		{1500, 1500 * time.Millisecond, ""},
		{600_000, 10 * time.Minute, ""},
		{600_001, 10 * time.Minute, "more than the most"},
		{1 << 52, 10 * time.Minute, "more than the most"},
		{-5, 2 * time.Minute, "is not a time"},
	}
	for _, test := range tests {
		got, note := clampTimeout(test.millis, limits)
		if got != test.want || !strings.Contains(note, test.says) || (test.says == "") != (note == "") {
			t.Errorf("%d: %s, %q", test.millis, got, note)
		}
	}
}

func TestBashText(t *testing.T) {
	tests := []struct {
		name    string
		result  shell.Result
		remarks []string
		want    string
	}{
		{"output alone", shell.Result{Shown: shell.Shown{Text: "hi\n", Bytes: 3}}, nil, "hi\n"},
		{"nothing", shell.Result{}, nil, "(no output)\n"},
		{"a failure comes first", shell.Result{Shown: shell.Shown{Text: "no\n", Bytes: 3}, ExitCode: 2}, nil, "Exit code 2\nno\n"},
		{"a signal is named", shell.Result{ExitCode: 137, Signal: "SIGKILL"}, nil, "Exit code 137 (ended by SIGKILL)\n"},
		{"a timeout", shell.Result{TimedOut: true, Shown: shell.Shown{Text: "so far", Bytes: 6}}, nil, "The command was ended after its timeout of 1s.\nso far"},
		{"remarks come last", shell.Result{Shown: shell.Shown{Text: "hi", Bytes: 2}}, []string{"One.", "Two."}, "hi\n\n[One. Two.]\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, bashText(&test.result, time.Second, test.remarks)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTaskStarted(t *testing.T) {
	const head = "It runs as " + `T. Its output: TaskOutput {"task_id":"T"}; end it with TaskStop.` + "\n"
	for _, test := range []struct {
		soFar   string
		remarks []string
		want    string
	}{
		{"", nil, head},
		{"one\ntw", nil, head + "So far:\none\ntw\n"},
		{"one\n", []string{"Alas."}, head + "So far:\none\n\n[Alas.]\n"},
	} {
		got := taskStarted("T", test.soFar, "It runs as", guard.Path{}, test.remarks)
		if diff := cmp.Diff(test.want, got.Text); diff != "" {
			t.Errorf("%q: %s", test.soFar, diff)
		}
	}
}

func TestList(t *testing.T) {
	tests := []struct {
		value string
		want  []string
	}{
		{"", nil},
		{"*.go", []string{"*.go"}},
		{"*.go,*.md", []string{"*.go", "*.md"}},
		{"*.go *.md", []string{"*.go", "*.md"}},
		{"*.{ts,tsx}", []string{"*.{ts,tsx}"}},
		{"src/**/*.{a,b}, !*_test.go ", []string{"src/**/*.{a,b}", "!*_test.go"}},
		{"./src/**,!./a ./*.go .github/**", []string{"/src/**", "!/a", "/*.go", ".github/**"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, fromHere(list(test.value))); diff != "" {
			t.Errorf("%q: %s", test.value, diff)
		}
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 line": count(1, "line"), "0 lines": count(0, "line"), "2 processes": count(2, "process"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestUnixLines(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "a\r": "a\r", "a\nb": "a\nb", "a\r\nb": "a\nb", "if true\r\nthen\r\n x\r\nfi\r\n": "if true\nthen\n x\nfi\n", "a\r\nb\r": "a\nb",
		"printf 'a\r\n'\nb": "printf 'a\r\n'\nb", "": "",
	} {
		if got := unixLines(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
