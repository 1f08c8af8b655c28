package search

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// globalExcludes finds the user's global excludes file as ripgrep does: by
// core.excludesFile of ~/.gitconfig, then of git/config in the configuration
// directory, then git/ignore there. It returns "" when there is no home.
func globalExcludes() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	for _, name := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(config, "git", "config")} {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if file := excludesFile(content); file != "" {
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
	for s := bufio.NewScanner(bytes.NewReader(config)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
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
