package text

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func numbered(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestDiff(t *testing.T) {
	ten := numbered(10)
	long := strings.Repeat("x", 5000)
	tests := []struct {
		name, old, new string
		maxLines       int
		want           string
		complete       bool
	}{
		{"same", "a", "a", 50, "", true},
		{"middle", ten, strings.Replace(ten, "line 5\n", "five\n", 1), 50,
			"--- f\n+++ f\n@@ -4,3 +4,3 @@\n line 4\n-line 5\n+five\n line 6\n", true},
		{"created", "", "a\nb\n", 50, "--- f\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n", true},
		{"emptied", "a\n", "", 50, "--- f\n+++ f\n@@ -1 +0,0 @@\n-a\n", true},
		{"final newline", "a\nb", "a\nb\n", 50, "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", true},
		{"bounded", "", ten, 5, "--- f\n+++ f\n@@ -0,0 +1,10 @@\n+line 1\n+line 2\n(8 more lines of the diff are not shown)\n", false},
		{"CRLF without marks", "a\r\nb\r\n", "a\r\nc\r\n", 50, "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", true},
		{"endings differ", "a\r\n", "a\n", 50, "--- f\n+++ f\n@@ -1 +1 @@\n-a␍\n+a\n", true},
		{"long line", long + "old" + long + "\n", long + "new" + long + "\n", 50,
			"--- f\n+++ f\n@@ -1 +1 @@\n" +
				"-… (4800 bytes) " + strings.Repeat("x", 200) + "old" + strings.Repeat("x", 797) + " … (4203 bytes)\n" +
				"+… (4800 bytes) " + strings.Repeat("x", 200) + "new" + strings.Repeat("x", 797) + " … (4203 bytes)\n", false},
		{"two long lines", long + "a\nx" + long + "c\n", long + "b\nx" + long + "d\n", 50,
			"--- f\n+++ f\n@@ -1,2 +1,2 @@\n" +
				"-… (4001 bytes) " + strings.Repeat("x", 999) + "a\n-… (4002 bytes) " + strings.Repeat("x", 999) + "c\n" +
				"+… (4001 bytes) " + strings.Repeat("x", 999) + "b\n+… (4002 bytes) " + strings.Repeat("x", 999) + "d\n", false},
		{"more went than came", long + "a\nb\nc\n", long + "d\n", 3,
			"--- f\n+++ f\n@@ -1,3 +1 @@\n(4 more lines of the diff are not shown)\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, complete := Diff("f", tt.old, tt.new, 1, tt.maxLines)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if complete != tt.complete {
				t.Errorf("complete = %v", complete)
			}
		})
	}
}

func BenchmarkDiffRewritten(b *testing.B) {
	old := numbered(100_000)
	now := strings.ReplaceAll(old, "line", "row")
	for b.Loop() {
		Diff("f", old, now, 3, 300)
	}
}

// TestDiffApplies lets patch(1) make the new text from the old one.
func TestDiffApplies(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("patch is not installed")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 20 {
		old := strings.SplitAfter(numbered(200), "\n")
		new := make([]string, 0, len(old))
		for _, line := range old {
			switch r.IntN(25) {
			case 0:
			case 1:
				new = append(new, line, "more\n")
			case 2:
				new = append(new, "changed "+line)
			default:
				new = append(new, line)
			}
		}
		from, to := strings.Join(old, ""), strings.TrimSuffix(strings.Join(new, ""), "\n")
		out, complete := Diff("f", from, to, round%4, 10_000)
		if !complete {
			t.Fatal("incomplete")
		}
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(from), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(patch, "-s", file)
		cmd.Stdin = strings.NewReader(out)
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s\n%s", err, msg, out)
		}
		if got, _ := os.ReadFile(file); string(got) != to {
			t.Fatalf("patched to something else with\n%s", out)
		}
	}
}

// What is left out of a long line is counted, one byte as one.
func TestLongLineMarks(t *testing.T) {
	for left, want := range map[int]string{1: "(1 byte)", 2: "(2 bytes)"} {
		if got := window(strings.Repeat("x", maxDiffLine+left), 0); !strings.HasSuffix(got, "x … "+want) {
			t.Errorf("end: %q", got[maxDiffLine-5:])
		}
		if got := window(strings.Repeat("x", maxDiffLine+left), maxDiffLine); !strings.HasPrefix(got, "… "+want+" x") {
			t.Errorf("beginning: %q", got[:20])
		}
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc", "a\nc\n", 3, 10)
	f.Fuzz(func(t *testing.T, old, new string, context, limit int) {
		context, limit = min(max(context, 0), 10), min(max(limit, 0), 1000)
		out, complete := Diff("f", old, new, context, limit)
		if (out == "") != (old == new) {
			t.Fatalf("%q", out)
		}
		if strings.Count(out, "\n") > limit+1 {
			t.Fatalf("more than %d lines: %q", limit, out)
		}
		_ = complete
	})
}
