package guard

import (
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settle"
)

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

// gitName is the directory of a repository. Package baseline protects it from commands, because git must work.
const gitName = ".git"

// protectedNames are the folded names of one element that are protected wherever they are: see package settle.
var protectedNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{gitName: true}
	for _, row := range settle.Names() {
		if row.Class == settle.Held && !strings.ContainsAny(row.Pattern, "/*") {
			names[pathname.Folded.Of(row.Pattern)] = true
		}
	}
	return names
})

// isProtectedName reports whether a name is protected. It ignores case: on many systems the programs
// that obey these files do too.
func isProtectedName(name string) bool { return protectedNames()[pathname.Folded.Of(name)] }

// inProtected reports whether a slashed path is protected: other programs run or obey such a file automatically.
// Writing it is never approved in advance.
func inProtected(path string) bool {
	for element := range strings.SplitSeq(path, "/") {
		if pathname.Folded.Of(element) == gitName {
			return !strings.HasSuffix(path, ".lock") // which git leaves when it is killed, and reads never
		}
	}
	return settle.ClassOf(path) == settle.Held
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
