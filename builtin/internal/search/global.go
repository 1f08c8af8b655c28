package search

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"toolhost/builtin/internal/search/ignore"
	"toolhost/builtin/internal/search/walk"
)

// userFiles are the files of the user that say what is ignored everywhere, by their
// paths. They are asked for in each query, and read when they have changed.
type userFiles struct {
	mu    sync.Mutex
	files map[string]userFile
}

// userFile is a file as it was read.
type userFile struct {
	content []byte // nil: it cannot be read
	stamp   walk.Stamp
}

// read returns the content of a file, as far as it is used; nil when there is none.
func (u *userFiles) read(name string) []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	info, err := walk.Lstat(name)
	if f, ok := u.files[name]; ok && err == nil && f.stamp == info.Stamp {
		return f.content
	}
	delete(u.files, name)
	if walk.IsGone(err) {
		return nil
	}
	at := time.Now().UnixNano()
	content := readUserFile(name)
	// A link says nothing of what it leads to.
	if err == nil && info.Kind == walk.File && !racy(info.Stamp, at) && onLocal(name) {
		if u.files == nil {
			u.files = map[string]userFile{}
		}
		u.files[name] = userFile{content, info.Stamp}
	}
	return content
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
	f, err := os.Open(name)
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
	return e.user.read(name)
}

// globalExcludes finds the user's global excludes file as ripgrep does: by
// core.excludesFile of ~/.gitconfig, then of git/config in the configuration
// directory, then git/ignore there. It returns "" when there is no home.
func (u *userFiles) globalExcludes() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	for _, name := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(config, "git", "config")} {
		if file := excludesFile(u.read(name)); file != "" {
			if rest, ok := strings.CutPrefix(file, "~/"); ok {
				file = filepath.Join(home, rest)
			}
			return file
		}
	}
	return filepath.Join(config, "git", "ignore")
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
