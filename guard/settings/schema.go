package settings

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON Schema of a settings file, for editors. Keys of Claude
// Code that do not concern tools are left open.
func Schema() *jsonschema.Schema {
	top := &jsonschema.Schema{
		Schema:      "https://json-schema.org/draft/2020-12/schema",
		Title:       "toolhost settings",
		Description: "Permission rules, hooks and sandbox of toolhost. Claude Code settings files have the same shape.",
		Type:        "object",
	}
	table := keys()
	for i := range table {
		k := &table[i]
		path := strings.Split(k.name, ".")
		object := top
		for _, name := range path[:len(path)-1] {
			object = property(object, name, &jsonschema.Schema{Type: "object"})
		}
		property(object, path[len(path)-1], k.schema())
	}
	hooks := property(top, "hooks", &jsonschema.Schema{Type: "object"})
	hooks.Description = "Programs that see calls before and after they run."
	for _, event := range hookEvents() {
		property(hooks, event, &jsonschema.Schema{Type: "array", Items: groupSchema()})
	}
	classifier := hookSchema()
	classifier.Description = "A command or HTTP hook that answers allow or ask in the mode auto, in 5 seconds at most. " +
		"A command needs \"contained\": false. It counts from user and managed settings only."
	property(property(top, "permissions", &jsonschema.Schema{Type: "object"}), "classifier", classifier)
	property(top, "env", &jsonschema.Schema{Type: "object", Description: "Added to the environment of commands, but for " +
		"what changes how Bash reads a command (BASH_ENV and the like). Of its PATH, $PATH and other variables are expanded.",
		AdditionalProperties: &jsonschema.Schema{Type: "string"}})
	property(top, "$schema", &jsonschema.Schema{Type: "string"})
	return top
}

// property returns the named property, added if it is missing.
func property(object *jsonschema.Schema, name string, add *jsonschema.Schema) *jsonschema.Schema {
	if object.Properties == nil {
		object.Properties = map[string]*jsonschema.Schema{}
	}
	if old := object.Properties[name]; old != nil {
		return old
	}
	object.Properties[name] = add
	object.PropertyOrder = append(object.PropertyOrder, name)
	return add
}

func (k *key) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Description: k.doc}
	value := k.def
	switch k.form {
	case formList:
		if k.raw == "object" {
			s.Type, s.AdditionalProperties = "object", &jsonschema.Schema{Type: "object"}
			break
		}
		s.Type, s.Items = "array", &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)}
		if k.named {
			*s = jsonschema.Schema{Description: k.doc, Type: "object",
				AdditionalProperties: &jsonschema.Schema{Type: s.Type, Items: s.Items}}
		}
		if k.objects {
			s.Items = &jsonschema.Schema{Type: "object", Required: []string{"provider"}}
			property(s.Items, "provider", &jsonschema.Schema{Type: "string", Enum: anyOf(k.known)})
		} else if k.known != nil {
			s.Items.Enum = anyOf(k.known)
		}
		if k.raw != "" {
			s.Items = &jsonschema.Schema{Type: "object"}
		}
		if k.member != "" {
			entry := &jsonschema.Schema{Type: "object", Required: []string{k.member, "mode"}}
			property(entry, k.member, s.Items)
			property(entry, "mode", &jsonschema.Schema{Type: "string", Enum: []any{"deny", "mask"}})
			property(entry, "injectHosts", &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string",
				MinLength: jsonschema.Ptr(1)}, Description: "With the mode mask: the hosts that get the value."})
			property(entry, "body", &jsonschema.Schema{Type: "boolean", Description: "With the mode mask: put the value into " +
				"forms, too."})
			if k.member == "path" {
				property(entry, "extract", &jsonschema.Schema{Type: "string", Description: "A regular expression whose group is " +
					"the secret."})
			} else {
				property(entry, "header", &jsonschema.Schema{Type: "string", Description: "What WebFetch sends to the hosts, " +
					"with the value for $: \"Authorization: Bearer $\"."})
				property(entry, "file", &jsonschema.Schema{Type: "string", Description: "The file that holds the value."})
				property(entry, "command", &jsonschema.Schema{Type: "string", Description: "A command that the host runs, and " +
					"that writes the value."})
			}
			s.Items = entry
		}
	case formSwitch:
		s.Type = "boolean"
	case formChoice:
		s.Type = "string"
		s.Enum = anyOf(k.order)
		value = strconv.Quote(k.def)
	case formText:
		s.Type, s.MinLength = "string", jsonschema.Ptr(1)
	case formRunner:
		s.AnyOf = []*jsonschema.Schema{{Type: "string"}, {Type: "object"}}
	case formNumber:
		s.Type, s.Minimum = "integer", jsonschema.Ptr(float64(max(1, k.least)))
		if k.most > 0 {
			s.Maximum = jsonschema.Ptr(float64(k.most))
		}
	case formDuration:
		s.Type, s.Pattern = "string", `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
		value = strconv.Quote(k.def)
	}
	if k.def != "" {
		s.Default = json.RawMessage(value)
	}
	s.Examples = []any{k.example()}
	return s
}

// anyOf returns the values of an enumeration.
func anyOf(values []string) (enum []any) {
	for _, v := range values {
		enum = append(enum, v)
	}
	return enum
}

// example returns a value that differs from the default.
func (k *key) example() any {
	switch k.form {
	case formSwitch:
		return k.def != "true"
	case formText:
		return map[string]string{"web.userAgent": "curl/8.0", "approvals.notify": "ntfy+https://ntfy.sh/TOPIC",
			"approvals.origin": "https://asks.example.com", "approvals.listen": "127.0.0.1:8390"}[k.name]
	case formRunner:
		return "claude"
	case formNumber:
		n, err := strconv.Atoi(k.def)
		if err != nil { // the setting has no default
			return 1_000_000
		}
		return 2 * n
	case formDuration:
		d, _ := time.ParseDuration(k.def)
		return shortDuration(2 * d)
	case formChoice:
		i := slices.IndexFunc(k.order, func(v string) bool { return v != k.def })
		return k.order[i]
	}
	if k.named {
		return map[string]any{"git": []string{"github.com"}, "npm": []string{"registry.npmjs.org"}}
	}
	if k.objects {
		return []any{map[string]any{"provider": "searxng", "url": "http://localhost:8888"}}
	}
	switch k.raw {
	case "object":
		return map[string]any{"memory": map[string]any{"command": "npx",
			"args": []string{"-y", "@modelcontextprotocol/server-memory"}}}
	case "array":
		return []any{map[string]any{"serverName": "memory"}}
	}
	if k.member != "" {
		return []any{map[string]any{k.member: listExample(k.name), "mode": "deny"}}
	}
	return strings.Fields(listExample(k.name))
}

// shortDuration formats a duration as a person writes it: "4m", not "4m0s".
func shortDuration(d time.Duration) string {
	if d%time.Minute == 0 {
		return strconv.Itoa(int(d.Minutes())) + "m"
	}
	return d.String()
}

// listExample returns entries of a list, with blanks between.
func listExample(name string) string {
	switch name {
	case keyAllow:
		return "Bash(make:*) Edit(/src/**)"
	case "permissions.ask":
		return "Bash(reboot:*)"
	case keyDeny:
		return "Read(.env) Bash(curl:*)"
	case keyNative:
		return "Bash Read Edit Write"
	case keyImport:
		return importProject
	case "enabledMcpjsonServers", "disabledMcpjsonServers":
		return "github"
	case "permissions.additionalDirectories":
		return "../shared"
	case "sandbox.excludedCommands":
		return "docker:*"
	case "sandbox.filesystem.allowWrite":
		return "/var/tmp/build"
	case "sandbox.filesystem.denyWrite":
		return "dist"
	case "sandbox.filesystem.denyRead", keyAllowRead:
		return "~/notes"
	case "sandbox.credentials.files":
		return "~/.npmrc"
	case "sandbox.credentials.sshAgent":
		return "git@github.com"
	case "sandbox.credentials.envVars":
		return "NPM_TOKEN"
	case "bash.env.pass":
		return "AWS_PROFILE MYAPP_*"
	case "tools.with":
		return "AskUserQuestion"
	case keyDomains:
		return "proxy.golang.org *.npmjs.org"
	case "sandbox.network.deniedDomains":
		return "*.example.com"
	case "web.allowPrivate":
		return "wiki.corp:443"
	case "sandbox.network.allowUnixSockets":
		return "/run/docker.sock"
	}
	return ""
}

func hookSchema() *jsonschema.Schema {
	text := func(doc string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Description: doc} }
	hook := &jsonschema.Schema{Type: "object", Required: []string{"type"}}
	property(hook, "type", &jsonschema.Schema{Type: "string", Enum: []any{"command", "http"}})
	property(hook, "command", text("Run by a shell; gets the event as JSON on standard input."))
	property(hook, "args", &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"},
		Description: "Arguments of the command, which is then started without a shell."})
	property(hook, "shell", &jsonschema.Schema{Type: "string", Enum: []any{"bash", "powershell"},
		Description: "What reads the command."})
	property(hook, "async", &jsonschema.Schema{Type: "boolean", Description: "Not waited for; nothing it says counts."})
	property(hook, "contained", &jsonschema.Schema{Type: "boolean", Default: json.RawMessage("true"),
		Description: "With false it runs outside of the sandbox, with your rights. Does not count from workspace files."})
	property(hook, "allowedEnvVars", &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"},
		Description: "Variables that $NAME in a header stands for."})
	property(hook, "url", text("Gets the event as JSON by POST."))
	property(hook, "headers", &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "string"}})
	property(hook, "timeout", &jsonschema.Schema{Type: "number", ExclusiveMinimum: jsonschema.Ptr(0.0),
		Description: "Seconds.", Default: json.RawMessage(strconv.Itoa(int(DefaultHookTimeout.Seconds())))})
	property(hook, "if", text("A permission rule that narrows the hook to matching calls."))
	return hook
}

func groupSchema() *jsonschema.Schema {
	group := &jsonschema.Schema{Type: "object", Required: []string{"hooks"}}
	property(group, "matcher", &jsonschema.Schema{Type: "string", Description: "Tool names, or a regular expression. " +
		"Empty or \"*\": every tool."})
	property(group, "hooks", &jsonschema.Schema{Type: "array", Items: hookSchema()})
	return group
}
