// Package mdfile reads Markdown files with members at their head, such as definitions of agents and skills. A command
// may have written them: the directory and the files may not be symbolic links. A link to a directory below is followed
// if it leads to one in the directory.
package mdfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// OpenDir opens a directory of such files. It refuses symbolic links, which could show files that rules deny, also
// one that a command puts there while the directory is opened.
func OpenDir(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !isAt(dir, opened) {
		err = fmt.Errorf("%s: its files are not read, because it is a symbolic link: replace it with a directory", dir)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// isAt reports whether the directory at dir is the one opened, and no symbolic link leads to it.
func isAt(dir string, opened fs.FileInfo) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real != dir {
		return false
	}
	info, err := os.Lstat(dir)
	return err == nil && os.SameFile(info, opened)
}

// Read returns the content of a regular file in a directory. It follows no symbolic link and does not wait for the
// writer of a FIFO.
func Read(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file, and is left out")
	}
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|privatefile.NoFollow|privatefile.NoWait, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(err, errors.New("another file was put in its place just now: it is left out"))
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it has more than %d bytes, and is left out", most)
	}
	return text, err
}

var fence = []byte("---\n")

// Split returns the members at the head of a text, between two lines ---, and what follows.
func Split(text []byte) (members map[string]any, body string, err error) {
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\uFEFF")), []byte("\r\n"), []byte("\n"))
	head, rest, ok := bytes.Cut(bytes.TrimPrefix(text, fence), append([]byte("\n"), fence...))
	if !ok || !bytes.HasPrefix(text, fence) {
		return nil, "", errors.New("it must begin with a line --- , members such as name and description, and another " +
			"line ---")
	}
	if slices.ContainsFunc(lexer.Tokenize(string(head)), func(t *token.Token) bool { return t.Type == token.AliasType }) {
		return nil, "", errors.New("it has an alias of YAML (*name), which can stand for any amount of text: write its " +
			"value, or quote a text that begins with *")
	}
	if err := yaml.Unmarshal(head, &members); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, "", fmt.Errorf("the text between the lines --- is not YAML: %s", first)
	}
	return members, strings.TrimSpace(string(rest)), nil
}
