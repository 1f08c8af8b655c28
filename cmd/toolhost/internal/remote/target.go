package remote

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A Target says how a command is started where the workspace is.
type Target struct {
	// Name is the target as the user wrote it.
	Name string
	// Argv starts sh there, with our input and output.
	Argv []string
	// Root is the directory of the workspace; empty: where the command starts.
	Root string
	// Sandbox, if not nil, is the claim in whose pod sh is started, instead of Argv.
	Sandbox *Claim
}

// program is what starts sh.
func (t Target) program() string {
	if t.Sandbox != nil {
		return t.Name
	}
	return t.Argv[0]
}

// Check is a command that shows what is wrong when there is no link.
func (t Target) Check() string {
	if t.Sandbox != nil {
		return t.Sandbox.See()
	}
	line := ""
	for _, word := range t.Argv[:len(t.Argv)-1] {
		if strings.Trim(word, shellPlain) != "" || word == "" {
			word = quote(word)
		}
		line += word + " "
	}
	return line + "true"
}

// shellPlain are the characters that no shell sees anything in.
const shellPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"

// A scheme is a kind of targets: how its launcher is called. In the arguments {user}, {host}, {port}, {first} and
// {container} stand for parts of the target; an argument whose part is empty is left out, with those that it is joined
// to by blanks.
type scheme struct {
	form, example string
	pattern       string // with the parts as named groups, and the root as path
	argv          []string
}

const hostPart, namePart = `[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Za-z:.%]+\]`, `[A-Za-z0-9_][A-Za-z0-9_.-]*`

// schemes are the kinds of targets, by what they begin with.
var schemes = map[string]scheme{
	"ssh://": {
		form: "ssh://[USER@]HOST[:PORT][/PATH]", example: "ssh://me@box/home/me/project",
		pattern: `^(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.\\-]*)@)?(?P<host>` + hostPart +
			`)(?::(?P<port>[0-9]+))?(?P<path>/.*)?$`,
		// No agent, display or forwarding of the user's configuration is for the tools there, and no command of it for sh.
		argv: []string{"ssh", "-T", "-a", "-x", "-o ClearAllForwardings=yes", "-o RemoteCommand=none", "-o BatchMode=yes",
			"-o ConnectTimeout=15", "-o ServerAliveInterval=15", "-o ServerAliveCountMax=2", "-p {port}", "-l {user}", "-- {host}", "sh"},
	},
	"docker://": {
		form: "docker://[USER@]CONTAINER[/PATH]", example: "docker://app/src",
		pattern: container, argv: []string{"docker", "exec", "-i", "-u {user}", "{host}", "sh"},
	},
	"podman://": {
		form: "podman://[USER@]CONTAINER[/PATH]", example: "podman://app/src",
		pattern: container, argv: []string{"podman", "exec", "-i", "-u {user}", "{host}", "sh"},
	},
	"k8s://": {
		form: "k8s://[CONTEXT@]NAMESPACE/POD[:CONTAINER][/PATH]", example: "k8s://team/app-0:dev/src",
		pattern: `^(?:(?P<user>[^@/ -][^@ ]*)@)?(?P<first>` + namePart + `)/(?P<host>` + namePart +
			`)(?::(?P<container>` + namePart + `))?(?P<path>/.*)?$`,
		argv: []string{"kubectl", "--context {user}", "-n {first}", "exec", "-i", "{host}", "-c {container}",
			"--", "sh"},
	},
	poolTarget: {
		form: "sandbox://[CONTEXT@]NAMESPACE/POOL[/WORKSPACE]", example: "sandbox://team/toolhost/my-project",
		pattern: `^(?:(?P<user>[^@/ -][^@ ]*)@)?(?P<first>[a-z0-9][a-z0-9-]*)/(?P<host>[a-z0-9][a-z0-9.-]*)(?:/(?P<path>[^/]{1,100}))?$`,
	},
	"wsl://": {
		form: "wsl://[USER@]DISTRIBUTION[/PATH]", example: "wsl://Ubuntu/home/me/project",
		pattern: container, argv: []string{"wsl.exe", "-d {host}", "-u {user}", "--", "sh"},
	},
}

// container matches the targets that are a name and a path.
const container = `^(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.:-]*)@)?(?P<host>` + namePart + `)(?P<path>/.*)?$`

// The kinds of targets that are not commands with arguments.
const (
	poolTarget         = "sandbox://"
	commandTarget      = "cmd:"
	devcontainerTarget = "devcontainer:"
)

// Targets lists the forms of targets.
func Targets() []string {
	forms := []string{"devcontainer:DIR", "cmd:'COMMAND ARG...'"}
	for _, s := range schemes {
		forms = append(forms, s.form)
	}
	slices.Sort(forms)
	return forms
}

// Parse reads a target.
func Parse(target string) (t Target, err error) {
	t.Name = target
	if rest, ok := strings.CutPrefix(target, commandTarget); ok {
		if t.Argv, err = words(rest); err == nil && len(t.Argv) == 0 {
			err = fmt.Errorf("%s: name the command that starts its arguments there, such as cmd:'sudo -u build'",
				target)
		}
		t.Argv = append(t.Argv, "sh")
		return t, err
	}
	if dir, ok := strings.CutPrefix(target, devcontainerTarget); ok {
		if dir == "" {
			dir = "."
		}
		t.Argv = []string{"devcontainer", "exec", "--workspace-folder", dir, "sh"}
		return t, nil
	}
	name, rest, _ := strings.Cut(target, "://")
	s, known := schemes[name+"://"]
	if !known {
		return t, fmt.Errorf("%q is not a target: use one of %s", target, strings.Join(Targets(), ", "))
	}
	rest, err = url.PathUnescape(rest)
	pattern := regexp.MustCompile(s.pattern) // here, because most commands need none of them
	parts := pattern.FindStringSubmatch(rest)
	if err != nil || parts == nil || strings.ContainsAny(rest, "\x00\n\r") {
		return t, fmt.Errorf("%q is not a target of the form %s, such as %s", target, s.form, s.example)
	}
	if name+"://" == poolTarget {
		pool := &Pool{Name: poolTarget + parts[2] + "/" + parts[3], context: parts[1], namespace: parts[2],
			pool: parts[3]}
		if parts[1] != "" {
			pool.Name = poolTarget + parts[1] + "@" + parts[2] + "/" + parts[3]
		}
		t.Sandbox = &Claim{pool: pool, Workspace: cmp.Or(parts[4], defaultWorkspace)}
		return t, nil
	}
	var all []string // of pairs for the replacer
	var missing []string
	for i, name := range pattern.SubexpNames() {
		value, hole := parts[i], "{"+name+"}"
		if name == "host" {
			value = strings.Trim(value, "[]")
		}
		if all = append(all, hole, value); value == "" {
			missing = append(missing, hole)
		}
	}
	fill := strings.NewReplacer(all...)
	for _, group := range s.argv {
		if slices.ContainsFunc(missing, func(hole string) bool { return strings.Contains(group, hole) }) {
			continue
		}
		for word := range strings.SplitSeq(group, " ") {
			t.Argv = append(t.Argv, fill.Replace(word))
		}
	}
	t.Root = parts[pattern.SubexpIndex("path")]
	if strings.HasPrefix(t.Root, "/~") {
		t.Root = t.Root[1:]
	}
	return t, nil
}

// words splits a command into its words. Quotes keep blanks.
func words(text string) (all []string, err error) {
	var word strings.Builder
	quote, within := rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, within = r, true
		case r == ' ' || r == '\t':
			if within {
				all = append(all, word.String())
				word.Reset()
			}
			within = false
		default:
			word.WriteRune(r)
			within = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed: %s", quote, text)
	}
	if within {
		all = append(all, word.String())
	}
	return all, nil
}
