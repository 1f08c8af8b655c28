package search

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// userFiles are the files of the user that say what is ignored everywhere, by their
// paths. Each query looks at them, and reads them when they have changed.
type userFiles struct {
	mu     sync.Mutex
	files  map[string]userFile
	places excludesPlaces
}

// userFile is a file as it was read.
type userFile struct {
	content  []byte // nil: it cannot be read
	excludes string // its core.excludesFile, if it is a git configuration
	stamp    walk.Stamp
}

// excludesPlaces is where git looks for what the user ignores everywhere.
type excludesPlaces struct {
	home    string   // "": there is none, and nothing of the rest
	configs []string // may name the file, the first that does
	usual   string   // the file, if none does
}

func findExcludes() (p excludesPlaces) {
	home, err := os.UserHomeDir()
	if err != nil {
		return p
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	git := filepath.Join(config, "git")
	return excludesPlaces{home, []string{filepath.Join(home, ".gitconfig"), filepath.Join(git, "config")},
		filepath.Join(git, "ignore")}
}

// read returns a file, up to the size that is used, or the zero userFile.
func (u *userFiles) read(name string) userFile {
	u.mu.Lock()
	defer u.mu.Unlock()
	info, err := walk.Lstat(name)
	if f, ok := u.files[name]; ok && err == nil && f.stamp == info.Stamp {
		return f
	}
	delete(u.files, name)
	if walk.IsGone(err) {
		return userFile{}
	}
	at := time.Now().UnixNano()
	f := userFile{content: readUserFile(name), stamp: info.Stamp}
	f.excludes = excludesFile(f.content)
	// The stamp of a link does not change with its target.
	if err == nil && info.Kind == walk.File && !racy(info.Stamp, at) && onLocal(name) {
		if u.files == nil {
			u.files = map[string]userFile{}
		}
		u.files[name] = f
	}
	return f
}

// onLocal reports whether the times of a file are those of this machine's kernel.
func onLocal(name string) bool {
	dir, err := walk.OpenRoot(filepath.Dir(name))
	if err != nil {
		return false
	}
	defer dir.Close()
	return dir.Local()
}

func readUserFile(name string) []byte {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // which may be leased, or a pipe
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(f, ignore.MaxFile+1))
	if err != nil {
		return nil
	}
	return content
}

// global reads the user's global excludes; nil when there are none.
func (e *Engine) global() []byte {
	name := e.config.GlobalIgnore
	if name == "" {
		name = e.user.globalExcludes()
	}
	if name == "" {
		return nil
	}
	return e.user.read(name).content
}

// globalExcludes finds the user's global excludes file as ripgrep does: by
// core.excludesFile of ~/.gitconfig, then of git/config in the configuration
// directory, then git/ignore there. It returns "" when there is no home.
func (u *userFiles) globalExcludes() string {
	p := &u.places
	for _, name := range p.configs {
		if file := u.read(name).excludes; file != "" {
			if rest, ok := strings.CutPrefix(file, "~/"); ok {
				file = filepath.Join(p.home, rest)
			}
			return file
		}
	}
	return p.usual
}

// excludesFile reads core.excludesFile from a git configuration.
func excludesFile(config []byte) string {
	section, value := "", ""
	for line := range bytes.Lines(config) {
		line := string(bytes.TrimSpace(line))
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(strings.Trim(line, "[] "))
			continue
		}
		key, v, ok := strings.Cut(line, "=")
		if ok && section == "core" && strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			value = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return value
}
