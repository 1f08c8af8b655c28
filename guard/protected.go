package guard

import (
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// protectedNames returns the names of files and directories that other programs run or obey
// automatically: version control, editors, shells, package managers, agents. Writing such a file, or
// any file in a directory of such a name, at any depth, is never approved in advance. The sandbox
// protects the same list, with .git/hooks and .git/config in place of .git, because git must work.
func protectedNames() []string {
	return []string{
		".git", ".hg", ".svn", ".jj",
		".vscode", ".idea", ".zed", ".vim", ".nvim", ".nvim.lua", ".helix", ".fleet", ".vs",
		".husky", ".githooks", ".lefthook", "lefthook.yml", ".pre-commit-config.yaml",
		".cargo", ".devcontainer", ".devcontainer.json",
		".claude", ".claude.json", ".toolhost", ".cursor", ".codex", ".gemini", ".windsurf", ".codeium", ".copilot", ".opencode",
		".kiro", ".roo", ".qwen", ".amazonq", ".continue", ".crush.json", "crush.json",
		".mcp.json", "mcp.json", "opencode.json", "opencode.jsonc",
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc",
		".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".xprofile", ".xinitrc",
		".envrc", ".direnvrc", ".tool-versions", ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise",
		".gitconfig", ".gitmodules", ".gitattributes", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml",
		".pypirc", ".pydistutils.cfg", ".gemrc", ".curlrc", ".wgetrc", ".netrc", ".screenrc", ".tmux.conf",
		".vimrc", ".exrc", ".nvimrc", ".gdbinit", ".lldbinit", ".Rprofile", ".irbrc", ".pryrc", ".pythonrc", ".pdbrc", ".dir-locals.el", ".ripgreprc",
	}
}

// homeSecrets returns the files and directories below the home directory that hold keys, credentials
// and browser profiles, and the histories of shells, which often contain passwords. They are masked;
// an explicit allow rule opens them. Files that programs cannot work without, such as .npmrc, are
// left out.
func homeSecrets(home string) []string {
	if home == "" {
		return nil
	}
	names := []string{
		".ssh", ".aws", ".azure", ".gnupg", ".kube", ".netrc", "_netrc", ".git-credentials", ".docker/config.json",
		".config/gcloud", ".config/gh/hosts.yml", ".config/git/credentials", ".config/op", ".oci", ".vault-token",
		".terraform.d/credentials.tfrc.json", ".pgpass", ".my.cnf", ".password-store", ".local/share/keyrings",
		".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json", ".config/github-copilot",
		".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".pypirc", ".s3cfg", ".boto", ".config/rclone", ".config/glab-cli", ".config/hub",
		".config/containers/auth.json", ".config/sops/age", ".local/share/kwalletd", ".bitcoin", ".ethereum/keystore", ".config/solana/id.json",
		".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".local/share/fish/fish_history",
		".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
		".config/microsoft-edge", ".config/vivaldi", "snap/firefox", "snap/chromium",
		"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Application Support/Google/Chrome",
		"Library/Application Support/Firefox", "Library/Application Support/BraveSoftware",
		"AppData/Local/Google/Chrome/User Data", "AppData/Roaming/Mozilla/Firefox", "AppData/Local/Microsoft/Edge/User Data",
		"AppData/Roaming/gcloud", "AppData/Local/Microsoft/Credentials", "AppData/Roaming/Microsoft/Credentials",
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = filepath.Join(home, filepath.FromSlash(n))
	}
	return out
}

var folded = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, n := range protectedNames() {
		names[pathname.Folded.Of(n)] = true
	}
	return names
})

// isProtectedName reports whether a name is protected. It ignores case: on many systems the programs
// that obey these files do too.
func isProtectedName(name string) bool { return folded()[pathname.Folded.Of(name)] }

// inProtected reports whether an element of a slashed path is a protected name.
func inProtected(path string) bool {
	names := folded()
	for element := range strings.SplitSeq(path, "/") {
		if element != "" && names[pathname.Folded.Of(element)] {
			return true
		}
	}
	return false
}

// isSettingsFile reports whether a slashed path would be a settings file of the host in a workspace,
// in any case.
func isSettingsFile(path string) bool {
	dir, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	parent := pathname.Folded.Of(dir[strings.LastIndexByte(dir, '/')+1:])
	name = pathname.Folded.Of(name)
	return name == ".toolhost" || parent == ".toolhost" ||
		parent == ".claude" && strings.HasPrefix(name, "settings") && strings.HasSuffix(name, ".json")
}
