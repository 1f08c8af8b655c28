package integration

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport lists, room by room, which rooms of the top level a room may know. Imports point down only.
var mayImport = map[string][]string{
	"cmd":         {"mcpserver", "builtin", "guard"},
	"mcpserver":   {"builtin", "guard", "readstate", "resultstore"},
	"builtin":     {"guard", "readstate", "resultstore"},
	"guard":       {},
	"readstate":   {},
	"resultstore": {},
	"integration": {}, // it knows the binary, as a client does
}

// mcpLibrary may be imported by mcpserver alone: the tools know nothing of MCP.
const mcpLibrary = "github.com/mark3labs/mcp-go"

// conformance serves the fixtures of the official suite, in the words of the library. It is a program for
// tests, so nothing can import it.
const conformance = "toolhost/integration/conformance"

func TestLayers(t *testing.T) {
	for _, fields := range imports(t, "toolhost/...") {
		if fields[0] == conformance {
			continue
		}
		from := room(fields[0])
		allowed, known := mayImport[from]
		if !known {
			t.Errorf("%s: the top level has no room %q", fields[0], from)
		}
		for _, imported := range fields[1:] {
			if to := room(imported); to != "" && to != from && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: %s may not know %s", fields[0], imported, from, to)
			}
			if strings.HasPrefix(imported, mcpLibrary) && from != "mcpserver" {
				t.Errorf("%s imports %s: only mcpserver knows the MCP library", fields[0], imported)
			}
		}
	}
}

// imports lists packages, each followed by what it imports.
func imports(t *testing.T, packages string) (lists [][]string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, packages).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		lists = append(lists, strings.Fields(line))
	}
	return lists
}

// guardMayImport lists, room by room, which rooms of guard a room in it may know: the judge all that it asks, and
// what it asks not the judge.
var guardMayImport = map[string][]string{
	"guard": {
		"guard/internal/command", "guard/internal/ctime", "guard/internal/gitrepo", "guard/internal/hardlink", "guard/internal/pathname",
		"guard/internal/protected", "guard/internal/realpath", "guard/internal/recipe", "guard/internal/rulebook", "guard/internal/wildcard", "guard/settings",
	},
	"guard/hook":               {"guard/settings"},
	"guard/internal/command":   {},
	"guard/internal/ctime":     {},
	"guard/internal/gitrepo":   {"guard/internal/realpath"},
	"guard/internal/hardlink":  {"guard/internal/pathname", "guard/internal/realpath", "guard/internal/rulebook"},
	"guard/internal/pathname":  {},
	"guard/internal/protected": {"guard/internal/pathname"},
	"guard/internal/realpath":  {},
	"guard/internal/recipe":    {},
	"guard/internal/rulebook":  {"guard/internal/command", "guard/internal/pathname", "guard/internal/realpath", "guard/internal/wildcard", "guard/settings"},
	"guard/internal/wildcard":  {},
	"guard/ownfile":            {},
	"guard/sandbox":            {},
	"guard/settings":           {"guard/internal/ctime", "guard/ownfile"},
}

func TestRoomsOfGuard(t *testing.T) {
	for _, fields := range imports(t, "toolhost/guard/...") {
		from := guardRoom(fields[0])
		allowed, known := guardMayImport[from]
		if !known {
			t.Errorf("%s: guard has no room %q", fields[0], from)
		}
		for _, imported := range fields[1:] {
			if to := guardRoom(imported); to != "" && to != from && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: %s may not know %s", fields[0], imported, from, to)
			}
		}
	}
}

// guardRoom is the room of a package of ours within guard, or "". That of the sandbox has rooms of its own.
func guardRoom(path string) string {
	rest, ok := strings.CutPrefix(path, "toolhost/")
	if strings.HasPrefix(rest, "guard/sandbox/") {
		return "guard/sandbox"
	}
	if !ok {
		return ""
	}
	return rest
}

// room is the top-level folder of a package of ours, or "".
func room(path string) string {
	rest, ok := strings.CutPrefix(path, "toolhost/")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// TestNothingIsFoundByName: a method that is looked up by a name known only at run time makes the linker keep every
// method of every type, which costs each start megabytes. The executor of html/template does that, for one.
func TestNothingIsFoundByName(t *testing.T) {
	symbols, err := exec.Command("go", "tool", "nm", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reflect.Value.MethodByName", "text/template.(*state).evalField"} {
		if strings.Contains(string(symbols), " "+name+"\n") {
			t.Errorf("%s is linked in", name)
		}
	}
}
