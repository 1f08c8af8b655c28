package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// helpGroups are the groups of commands in the help, each with its commands.
var helpGroups = []struct {
	id, title string
	commands  []string
}{
	{"serve", "Serve clients:", []string{"stdio", "http", "run", "try", "remote", "install", "uninstall", "verify", "mcp", "token", "status", "console"}},
	{"rules", "Set the rules:", []string{"allow", "ask", "deny", "allow-host", "credential", "mode", "rules", "check", "trust", "keep", "schema"}},
	{"past", "See and undo what happened:", []string{"log", "history", "diff", "undo", "rewind", "agent"}},
	{"try", "Try and look:", []string{"demo", "call", "tools", "doctor", "profile", "version"}},
}

// examples are the examples in the help of commands that define none themselves.
var examples = map[string]string{
	"toolhost":               "toolhost stdio --root ~/src/project\ntoolhost call Read file_path=README.md",
	"toolhost stdio":         "toolhost stdio --root ~/src/project\ntoolhost stdio --tools Read,Grep,Glob ~/src/project ~/src/library",
	"toolhost http":          "toolhost http --root ~/src/project\ntoolhost http --listen unix:/run/user/1000/toolhost.sock --console",
	"toolhost uninstall":     "toolhost uninstall claude-desktop",
	"toolhost token":         "toolhost token add ci --rights read --expires 30d",
	"toolhost token add":     "toolhost token add ci --rights read --expires 30d",
	"toolhost token list":    "toolhost token list --json",
	"toolhost token revoke":  "toolhost token revoke ci",
	"toolhost credential":    "toolhost credential add github --command 'gh auth token'\ntoolhost credential list",
	"toolhost agent":         "toolhost agent list --json",
	"toolhost mcp":           "toolhost mcp add memory npx -y @modelcontextprotocol/server-memory\ntoolhost mcp call memory search_nodes query=release",
	"toolhost mcp login":     "toolhost mcp login docs",
	"toolhost mcp logout":    "toolhost mcp logout docs",
	"toolhost mcp list":      "toolhost mcp list --json",
	"toolhost mcp add":       "toolhost mcp add memory npx -y @modelcontextprotocol/server-memory\ntoolhost mcp add -H 'Authorization: Bearer ${TOKEN}' docs https://docs.example/mcp",
	"toolhost mcp remove":    "toolhost mcp remove memory",
	"toolhost mcp review":    "toolhost mcp review memory",
	"toolhost mcp accept":    "toolhost mcp accept memory",
	"toolhost mcp restart":   "toolhost mcp restart memory",
	"toolhost mcp call":      "toolhost mcp call memory search_nodes query=release",
	"toolhost console":       "toolhost console\ntoolhost console ~/src/project",
	"toolhost rules":         "toolhost rules --root ~/src/project\ntoolhost rules --remove 3",
	"toolhost check":         "toolhost check Bash command='git push'\ntoolhost check Read '{\"file_path\":\".env\"}' --json",
	"toolhost trust":         "toolhost trust ~/src/project\ntoolhost trust --list",
	"toolhost schema":        "toolhost schema > toolhost.schema.json",
	"toolhost history":       "toolhost history --since 1d\ntoolhost history --path src --json | jq -r '.[].files[].path'",
	"toolhost history usage": "toolhost history usage",
	"toolhost call":          "toolhost call Read file_path=README.md limit=5\ntoolhost call Edit '{\"file_path\":\"a.go\",\"old_string\":\"x\",\"new_string\":\"y\"}' --session s1\ntoolhost call Read file_path=logo.png --output logo-copy.png",
	"toolhost tools":         "toolhost tools --json",
	"toolhost demo":          "toolhost demo",
	"toolhost doctor":        "toolhost doctor --root ~/src/project",
	"toolhost version":       "toolhost version --json",
	"toolhost man":           "toolhost man /usr/local/share/man/man1",
}

// arrange puts commands in groups, and gives each its example.
func arrange(root *cobra.Command) {
	for _, g := range helpGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			if cmd, _, err := root.Find([]string{name}); err == nil && cmd != root {
				cmd.GroupID = g.id
			}
		}
	}
	root.SetHelpCommandGroupID("try")
	root.SetCompletionCommandGroupID("try")
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		if text := examples[cmd.CommandPath()]; text != "" {
			cmd.Example = cmp.Or(cmd.Example, "  "+strings.ReplaceAll(text, "\n", "\n  "))
		}
		for _, below := range cmd.Commands() {
			each(below)
		}
	}
	each(root)
}

// implied adds the command that was left out: clients may start toolhost with directories and flags only, or without
// arguments.
func implied(root *cobra.Command, args []string) []string {
	if len(args) == 0 {
		return []string{"stdio"}
	}
	switch first := args[0]; {
	case first == "-h", first == "--help":
		return args
	case strings.HasPrefix(first, "-"):
		for _, word := range args {
			if isCommand(root, word) {
				return args // flags before a command: an error that says so is better than a directory of that name
			}
		}
	case isCommand(root, first), !isDirectory(first): // such a directory is written ./NAME
		return args
	}
	return append([]string{"stdio"}, args...)
}

// isCommand reports whether a word names a command.
func isCommand(root *cobra.Command, word string) bool {
	cmd, _, err := root.Find([]string{word})
	return err == nil && cmd != root
}

// isDirectory reports whether a word can only be the name of a directory.
func isDirectory(word string) bool {
	info, err := os.Stat(word)
	return err == nil && info.IsDir() || strings.ContainsRune(word, filepath.Separator) || word == "." || word == "~"
}
