package alias

import "testing"

func TestTool(t *testing.T) {
	for name, want := range map[string]string{
		"Read": "Read", "read_file": "Read", "readFile": "Read", "Read-File": "Read", "View": "Read", "str_replace": "Edit", "write_file": "Write", "BASH": "Bash",
		"run_shell_command": "Bash", "grep_search": "Grep", "BashOutput": "TaskOutput", "kill_shell": "TaskStop",
		"": "", "_": "", "MultiEdit": "", "LS": "", "replace": "", "read": "Read", "rea": "", "mcp__other__read_file": "",
	} {
		if got := Tool(name); got != want {
			t.Errorf("Tool(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRuled(t *testing.T) {
	for name, want := range map[string]string{"MultiEdit": "Edit", "Replace": "Write", "read_file": "Read", "LS": "",
		"apply_patch": "", "delete_file": ""} {
		if got := Ruled(name); got != want {
			t.Errorf("Ruled(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestTables: no name means two things.
func TestTables(t *testing.T) {
	known := map[string]string{}
	add := func(name, means string) {
		if was := known[fold(name)]; was != "" {
			t.Errorf("%s means %s and %s", name, was, means)
		}
		known[fold(name)] = means
	}
	for tool, names := range tools {
		add(tool, tool)
		for _, name := range names {
			add(name, tool)
		}
	}
	for _, s := range instead {
		if tools[s.Tool] == nil {
			t.Errorf("%v: %s is no tool", s.names, s.Tool)
		}
		for _, name := range s.names {
			add(name, "what to call instead")
		}
	}
	for tool, all := range arguments {
		folded := map[string]Argument{}
		for name, a := range all {
			if was, twice := folded[fold(name)]; twice && was != a {
				t.Errorf("%s of %s means %v and %v", name, tool, was, a)
			}
			folded[fold(name)] = a
		}
	}
}
