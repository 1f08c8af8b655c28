package guard_test

import (
	"fmt"
	"log"
	"os"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
)

// A tool resolves what it was given, says what it would do, and opens only what
// was judged.
func Example() {
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	policy, err := guard.New(guard.Config{Roots: []string{root}, Settings: &settings.Settings{
		DefaultMode: settings.ModeAcceptEdits,
		Deny:        []settings.Entry{{Text: "Read(.env)", File: ".claude/settings.json", Line: 3}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"notes.md", "sub/.env", "/etc/passwd"} {
		path, err := policy.Resolve(name)
		if err != nil {
			log.Fatal(err)
		}
		v := policy.Judge(guard.Intent{Tool: "Read", Effects: []guard.Effect{guard.Read{Path: path}}})
		fmt.Println(name, v.Action, v.Rule, v.Source)
	}
	// Output:
	// notes.md allow boundary built in
	// sub/.env deny Read(.env) .claude/settings.json:3
	// /etc/passwd ask boundary built in
}
