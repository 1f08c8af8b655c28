package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A GitConfigGuard keeps commands from leaving behind a git configuration that
// executes something when somebody runs git outside of the sandbox. git must be
// able to write its configuration, so the files stay writable and are cleaned
// after each command.
type GitConfigGuard struct {
	root  string // the work tree
	files []string
	known map[string]bool // settings that were there before
	text  map[string][]byte
}

// A RemovedSetting is a setting that was taken out.
type RemovedSetting struct {
	File string
	Key  string // "core.fsmonitor"; "" if the whole file was put back
	Why  string
}

// gitConfigFiles are the configuration files of a repository, and the files
// that make git read others. Those of submodules and further work trees lie
// deeper and are found by a walk.
var gitConfigFiles = []string{".git/config", ".git/config.worktree"}

// maxGitConfig is the size from which a configuration is put back unread; real
// ones have a few KiB.
const maxGitConfig = 1 << 20

// NewGitConfigGuard notes the configuration of the repository whose work tree is
// root, before a command runs. Without a repository there is nothing to note,
// and everything that appears counts as new.
func NewGitConfigGuard(root string) (*GitConfigGuard, error) {
	g := &GitConfigGuard{root: root, known: make(map[string]bool), text: make(map[string][]byte)}
	files, err := g.find()
	if err != nil {
		return nil, err
	}
	g.files = files
	for _, name := range files {
		text, err := g.read(name)
		if err != nil {
			return nil, err
		}
		g.text[name] = text
		settings, err := parseGitConfig(text)
		if err != nil {
			continue // git will not read it either; if a command mends it, all in it is new
		}
		for _, s := range settings {
			g.known[name+"\x00"+s.key+"\x00"+s.value] = true
		}
	}
	return g, nil
}

// find lists the configuration files there are, below root.
func (g *GitConfigGuard) find() ([]string, error) {
	list := slices.Clone(gitConfigFiles)
	for _, dir := range []string{".git/modules", ".git/worktrees"} {
		err := filepath.WalkDir(filepath.Join(g.root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "objects" || d.Name() == "refs" || d.Name() == "logs"):
				return filepath.SkipDir
			case d.Name() == "config" || d.Name() == "config.worktree":
				rel, err := filepath.Rel(g.root, path)
				list = append(list, rel)
				return err
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("sandbox: looking for git configuration: %w", err)
		}
	}
	return list, nil
}

// read returns a file's text; nil if it does not exist.
func (g *GitConfigGuard) read(name string) ([]byte, error) {
	root, err := os.OpenRoot(g.root)
	if err != nil {
		return nil, fmt.Errorf("sandbox: git configuration: %w", err)
	}
	defer root.Close()
	st, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: git configuration: %w", err)
	}
	if !st.Mode().IsRegular() || st.Size() > maxGitConfig {
		return nil, fmt.Errorf("sandbox: %s is no ordinary configuration file", filepath.Join(g.root, name))
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("sandbox: git configuration: %w", err)
	}
	return text, nil
}

// Clean takes settings that execute something out of the configuration, unless
// they were there when the guard was made. A file that cannot be understood is
// put back as it was. Call it when nothing of the command runs any more.
func (g *GitConfigGuard) Clean() ([]RemovedSetting, error) {
	files, err := g.find()
	if err != nil {
		return nil, err
	}
	var removed []RemovedSetting
	var errs []error
	for _, name := range files {
		r, err := g.clean(name)
		removed = append(removed, r...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

func (g *GitConfigGuard) clean(name string) ([]RemovedSetting, error) {
	path := filepath.Join(g.root, name)
	text, err := g.read(name)
	if err != nil {
		return []RemovedSetting{{path, "", "it is no ordinary file any more"}}, g.write(name, g.text[name])
	}
	if bytes.Equal(text, g.text[name]) {
		return nil, nil
	}
	settings, err := parseGitConfig(text)
	if err != nil {
		return []RemovedSetting{{path, "", err.Error()}}, g.write(name, g.text[name])
	}
	var removed []RemovedSetting
	kept := make([]byte, 0, len(text))
	last := 0
	for _, s := range settings {
		if g.known[name+"\x00"+s.key+"\x00"+s.value] {
			continue
		}
		if why := executes(s); why != "" {
			removed = append(removed, RemovedSetting{path, s.key, why})
			kept = append(kept, text[last:s.start]...)
			last = s.end
		}
	}
	if removed == nil {
		return nil, nil
	}
	return removed, g.write(name, append(kept, text[last:]...))
}

// write replaces a file, whatever is in its place; nil removes it.
func (g *GitConfigGuard) write(name string, text []byte) error {
	root, err := os.OpenRoot(g.root)
	if err != nil {
		return fmt.Errorf("sandbox: git configuration: %w", err)
	}
	defer root.Close()
	if st, err := root.Lstat(name); err == nil && (text == nil || !st.Mode().IsRegular()) {
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("sandbox: git configuration: %w", err)
		}
	}
	if text == nil {
		return nil
	}
	next := name + ".toolhost"
	if err := root.RemoveAll(next); err != nil {
		return fmt.Errorf("sandbox: git configuration: %w", err)
	}
	if err := root.WriteFile(next, text, 0o644); err != nil {
		return fmt.Errorf("sandbox: git configuration: %w", err)
	}
	if err := root.Rename(next, name); err != nil {
		return fmt.Errorf("sandbox: git configuration: %w", err)
	}
	return nil
}

// executing maps settings of git-config(1) whose value is a command, or leads to
// one. "*" stands for any subsection.
var executing = func() map[string]bool {
	set := make(map[string]bool)
	for _, key := range strings.Fields(`
		core.fsmonitor core.sshcommand core.hookspath core.pager core.editor core.askpass core.gitproxy
		core.alternaterefscommand sequence.editor
		credential.helper credential.*.helper gpg.program gpg.*.program gpg.ssh.defaultkeycommand
		diff.external diff.*.command diff.*.textconv filter.*.clean filter.*.smudge filter.*.process merge.*.driver
		mergetool.*.cmd mergetool.*.path difftool.*.cmd difftool.*.path guitool.*.cmd
		man.*.cmd man.*.path man.viewer browser.*.cmd browser.*.path web.browser help.browser instaweb.httpd instaweb.browser
		remote.*.uploadpack remote.*.receivepack remote.*.vcs
		uploadpack.packobjectshook interactive.difffilter imap.tunnel
		sendemail.sendmailcmd sendemail.smtpserver sendemail.tocmd sendemail.cccmd sendemail.headercmd
		sendemail.*.sendmailcmd sendemail.*.smtpserver sendemail.*.tocmd sendemail.*.cccmd
		trailer.*.command trailer.*.cmd tar.*.command init.templatedir
		include.path includeif.*.path protocol.allow protocol.*.allow
		lfs.customtransfer.*.path lfs.customtransfer.*.args lfs.standalonetransferagent lfs.extension.*.clean lfs.extension.*.smudge
	`) {
		set[key] = true
	}
	return set
}()

// isGitBool reports whether git takes a value for true or false.
func isGitBool(value string) bool {
	return slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(value))
}

// executes says why a setting can make git execute something, or "".
func executes(s gitSetting) string {
	section, rest, _ := strings.Cut(s.key, ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	wild := section + "." + name
	if len(rest) > len(name) {
		wild = section + ".*." + name
	}
	switch {
	case (wild == "core.fsmonitor" || section == "pager") && isGitBool(s.value):
		return ""
	case executing[wild], section == "lfs" && executing[lfsKey(s.key)]:
		return "git can execute a command because of it"
	case section == "pager":
		return "git would execute it as a pager"
	case section == "alias" && strings.HasPrefix(strings.TrimSpace(s.value), "!"):
		return "the alias executes a command"
	case section == "alias" && strings.HasPrefix(strings.TrimSpace(s.value), "-"):
		return "the alias changes git's configuration"
	case section == "submodule" && name == "update" && strings.HasPrefix(strings.TrimSpace(s.value), "!"):
		return "git would execute it to update a submodule"
	case strings.Contains(strings.ToLower(s.key+s.value), "ext::"):
		return "the address executes a command"
	}
	return ""
}

// lfsKey gives lfs.a.NAME.b the form of the table.
func lfsKey(key string) string {
	parts := strings.SplitN(key, ".", 3)
	if len(parts) < 3 {
		return key
	}
	return parts[0] + "." + parts[1] + ".*" + parts[2][max(strings.LastIndexByte(parts[2], '.'), 0):]
}
