package release

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
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

// privateFile and stateDir are leaves of guard that every room may import: how stores write, and bound their
// directories.
const (
	privateFile = host.Module + "guard/privatefile"
	stateDir    = host.Module + "guard/statedir"
)

// mcpLibrary may be imported by mcpserver alone: the tools know nothing of MCP.
const mcpLibrary = "github.com/mark3labs/mcp-go"

// conformance serves the fixtures of the official suite, in the words of the library. It is a program for
// tests, so nothing can import it.
const conformance = host.Module + "cmd/toolhost/internal/conformance"

// fakeModel plays the model of a client under test. It is a leaf of cmd/toolhost, which verifies clients with it.
const fakeModel = host.Module + "cmd/toolhost/fakemodel"

func TestLayers(t *testing.T) {
	for _, fields := range imports(t, host.Module+"...") {
		if fields[0] == conformance {
			continue
		}
		from := room(fields[0])
		allowed, known := mayImport[from]
		if !known {
			t.Errorf("%s: the top level has no room %q", fields[0], from)
		}
		for _, imported := range fields[1:] {
			leaf := imported == privateFile || imported == stateDir || imported == fakeModel
			if to := room(imported); to != "" && to != from && !leaf && !slices.Contains(allowed, to) {
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
	"guard":                     {"guard/internal/command", "guard/internal/realpath", "guard/internal/gitrepo", "guard/internal/pathname", "guard/internal/proxy", "guard/internal/rules", "guard/hostprogram", "guard/privatedir", "guard/sandbox", "guard/settings", "guard/settle", "guard/sshagent"},
	"guard/alias":               {},
	"guard/changes":             {},
	"guard/credential":          {"guard/hostprogram"},
	"guard/hook":                {"guard/alias", "guard/hostprogram", "guard/settings"},
	"guard/hostpreset":          {},
	"guard/hostprogram":         {"guard/internal/pathname", "guard/internal/realpath"},
	"guard/internal/chmodretry": {},
	"guard/internal/command":    {},
	"guard/internal/gitrepo":    {"guard/internal/pathname", "guard/internal/realpath"},
	"guard/internal/pathname":   {},
	"guard/internal/netstack":   {},
	"guard/internal/proxy":      {},
	"guard/internal/realpath":   {"guard/lease"},
	"guard/internal/rules":      {"guard/alias", "guard/internal/command", "guard/internal/pathname", "guard/internal/realpath", "guard/settings"},
	"guard/privatefile":         {"guard/internal/realpath", "guard/lease"},
	"guard/lease":               {},
	"guard/settle":              {"guard/internal/chmodretry", "guard/internal/pathname", "guard/internal/realpath", "guard/privatefile", "guard/statedir"},
	"guard/statedir":            {"guard/privatefile"},
	"guard/privatedir":          {"guard/privatefile", "guard/statedir"},
	"guard/sandbox":             {"guard/changes", "guard/hostprogram", "guard/internal/chmodretry", "guard/internal/gitrepo", "guard/internal/netstack", "guard/internal/pathname", "guard/internal/proxy", "guard/privatefile", "guard/settle", "guard/sshagent", "guard/statedir"},
	"guard/settings":            {"guard/credential", "guard/internal/realpath", "guard/internal/pathname", "guard/lease", "guard/privatefile", "guard/sshagent"},
	"guard/sshagent":            {},
}

func TestRoomsOfGuard(t *testing.T) { checkRooms(t, "guard", guardMayImport) }

// sandboxMayImport does the same for the sandbox. The host's gates and the process inside do not know each other, and
// what they stand on knows neither.
var sandboxMayImport = map[string][]string{
	"guard/sandbox": {
		"guard/sandbox/connectgate", "guard/sandbox/execgate", "guard/sandbox/internal/behalf",
		"guard/sandbox/internal/contract", "guard/sandbox/internal/kernel",
		"guard/sandbox/internal/landlock", "guard/sandbox/internal/namespaces", "guard/sandbox/internal/place",
		"guard/sandbox/internal/proc", "guard/sandbox/internal/supervisor",
	},
	"guard/sandbox/baseline":            {"guard/sandbox"},
	"guard/sandbox/connectgate":         {"guard/sandbox/internal/behalf", "guard/sandbox/internal/kernel", "guard/sandbox/internal/place", "guard/sandbox/internal/proc"},
	"guard/sandbox/execgate":            {"guard/sandbox/internal/behalf", "guard/sandbox/internal/kernel", "guard/sandbox/internal/place", "guard/sandbox/internal/proc"},
	"guard/sandbox/internal/behalf":     {"guard/sandbox/internal/kernel", "guard/sandbox/internal/place"},
	"guard/sandbox/internal/contract":   {"guard/sandbox/internal/place"},
	"guard/sandbox/internal/kernel":     {},
	"guard/sandbox/internal/landlock":   {"guard/sandbox/internal/contract", "guard/sandbox/internal/place"},
	"guard/sandbox/internal/namespaces": {"guard/sandbox/internal/contract", "guard/sandbox/internal/place"},
	"guard/sandbox/internal/place":      {},
	"guard/sandbox/internal/proc":       {"guard/sandbox/internal/place"},
	"guard/sandbox/internal/supervisor": {
		"guard/sandbox/internal/contract", "guard/sandbox/internal/kernel", "guard/sandbox/internal/landlock",
		"guard/sandbox/internal/namespaces", "guard/sandbox/internal/place", "guard/sandbox/internal/proc",
		"guard/sandbox/ownprocess",
	},
	"guard/sandbox/ownprocess": {},
}

func TestRoomsOfSandbox(t *testing.T) { checkRooms(t, "guard/sandbox", sandboxMayImport) }

// mcpserverMayImport does the same for mcpserver. What stands next to the pipeline knows it by its interfaces and is
// not known to it; what it stands on does not know it.
var mcpserverMayImport = map[string][]string{
	"mcpserver": {
		"mcpserver/audit", "mcpserver/auth", "mcpserver/doctor", "mcpserver/internal/approvals",
		"mcpserver/internal/stdio", "mcpserver/internal/transport", "mcpserver/internal/jsonrpc", "mcpserver/internal/scope",
		"mcpserver/internal/httpserver", "mcpserver/internal/gateway",
	},
	"mcpserver/audit":               {},
	"mcpserver/auth":                {},
	"mcpserver/client":              {},
	"mcpserver/doctor":              {"mcpserver/audit"},
	"mcpserver/internal/gateway":    {},
	"mcpserver/internal/approvals":  {},
	"mcpserver/internal/stdio":      {"mcpserver/audit", "mcpserver/auth", "mcpserver/internal/transport", "mcpserver/internal/jsonrpc"},
	"mcpserver/internal/transport":  {"mcpserver/audit", "mcpserver/auth", "mcpserver/internal/jsonrpc"},
	"mcpserver/internal/jsonrpc":    {},
	"mcpserver/internal/scope":      {},
	"mcpserver/internal/httpserver": {"mcpserver/audit", "mcpserver/auth", "mcpserver/internal/transport", "mcpserver/internal/jsonrpc"},
}

func TestRoomsOfMcpserver(t *testing.T) { checkRooms(t, "mcpserver", mcpserverMayImport) }

// checkRooms holds the packages below a folder to what each may know of the others there.
func checkRooms(t *testing.T, top string, may map[string][]string) {
	for _, fields := range imports(t, host.Module+top+"/...") {
		from := roomWithin(top, fields[0])
		allowed, known := may[from]
		if !known {
			t.Errorf("%s: %s has no room %q", fields[0], top, from)
		}
		for _, imported := range fields[1:] {
			if to := roomWithin(top, imported); to != "" && to != from && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: %s may not know %s", fields[0], imported, from, to)
			}
		}
	}
}

// roomWithin is the room of a package of ours within a folder, or "".
func roomWithin(top, path string) string {
	const sandbox = "guard/sandbox" // for the rest of guard it is one room
	rest, ok := strings.CutPrefix(path, host.Module)
	switch {
	case !ok, rest != top && !strings.HasPrefix(rest, top+"/"):
		return ""
	case top != sandbox && strings.HasPrefix(rest, sandbox+"/"):
		return sandbox
	}
	return rest
}

// room is the top-level folder of a package of ours, or "".
func room(path string) string {
	rest, ok := strings.CutPrefix(path, host.Module)
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// TestNothingIsFoundByName: a method that is looked up by a name known only at run time makes the linker keep every
// method of every type, which costs each start megabytes. The executor of html/template does that, for one.
func TestNothingIsFoundByName(t *testing.T) {
	symbols, err := exec.Command("go", "tool", "nm", host.Binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reflect.Value.MethodByName", "text/template.(*state).evalField"} {
		if strings.Contains(string(symbols), " "+name+"\n") {
			t.Errorf("%s is linked in", name)
		}
	}
}
