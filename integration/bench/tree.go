package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// smallFiles is the size of the small tree: that of a library.
const smallFiles = 400

// makeTree makes a tree of files that look like code, always the same ones, with what search has to know of: ignore
// files, hidden files, binary files, Windows line endings.
func makeTree(root string, n int) error {
	draw := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		path := filepath.Join(root, fmt.Sprintf("part%03d", i/40),
			fmt.Sprintf("file%04d%s", i, []string{".go", "_test.go", ".c", ".md"}[i%4]))
		if err := put(path, code(draw, 40+draw.IntN(200))); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		".gitignore": "ignored/\n*.log\n", "ignored/x.go": "sync.Mutex\n", "debug.log": "sync.Mutex\n", "README.md": "# A tree\n\nTODO\n",
		".hidden/h.go": "var mu sync.Mutex // FIXME\n", "binary.dat": "sync.Mutex\x00err\n", "windows.go": "if err != nil {\r\n\treturn\r\n}\r\n",
	} {
		if err := put(filepath.Join(root, name), text); err != nil {
			return err
		}
	}
	return os.Mkdir(filepath.Join(root, ".git"), 0o755) // the ignore files of git count in a repository
}

func put(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// code makes lines that look like code.
func code(draw *rand.Rand, lines int) string {
	words := strings.Fields("buffer reader index token parse value count string writer offset handle state table entry node result error limit path")
	word := func() string { return words[draw.IntN(len(words))] }
	forms := []func() string{
		func() string { return fmt.Sprintf("\t%s := %s.%s(%d)", word(), word(), word(), draw.IntN(1000)) },
		func() string { return "\tif err != nil {\n\t\treturn nil, err\n\t}" },
		func() string { return fmt.Sprintf("func (%s *%s) String() string {", word(), word()) },
		func() string { return fmt.Sprintf("\tfor _, %s := range %s {", word(), word()) },
		func() string { return fmt.Sprintf("// %s the %s of a %s.", word(), word(), word()) },
		func() string { return "\treturn nil\n}\n" },
		func() string { return fmt.Sprintf("\tmu sync.Mutex // guards %s", word()) },
		func() string {
			return fmt.Sprintf("// TODO: %s_%d is a goroutine leak of %sError", word(), draw.IntN(99), word())
		},
		func() string { return fmt.Sprintf("import %q", word()+"/"+word()) },
	}
	var b strings.Builder
	for range lines {
		f := draw.IntN(40) // most lines are of the common forms
		if f >= len(forms) {
			f %= 6
		}
		b.WriteString(forms[f]() + "\n")
	}
	return b.String()
}

// goTree is Go's own source tree.
func goTree() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("finding Go's source tree: %w", err)
	}
	return filepath.EvalSymlinks(filepath.Join(strings.TrimSpace(string(out)), "src"))
}

// build builds the binary of a checkout, with further flags of go build.
func build(checkout, binary string, flags ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-o", binary}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/toolhost")...)
	cmd.Dir = checkout
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return nil
}

// checkout is the top of the checkout that the program is run in.
func checkout() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("run this below the checkout: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
