//go:build unix

package hook_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/settings"
)

// A hook of one line keeps git from pushing.
func ExampleRunner_Pre() {
	set := []settings.HookMatcher{{
		Matcher: "Bash",
		Hooks: []settings.Hook{{Type: "command",
			Command: `if grep -q 'git push'; then echo "push by hand" >&2; exit 2; fi`}},
		Source: settings.Entry{File: "/home/me/.claude/settings.json", Line: 4},
	}}
	call := hook.Call{Tool: "Bash", Input: json.RawMessage(`{"command": "git \u0070ush --force"}`)}

	d := hook.New(hook.Config{Dir: "/", Start: hook.StartPlain}).Pre(context.Background(), set, call)
	fmt.Println(d.Action)
	fmt.Println(d.Reason)
	fmt.Println(d.From)
	// Output:
	// deny
	// push by hand
	// /home/me/.claude/settings.json:4
}
