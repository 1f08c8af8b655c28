package remote

import (
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
	// CheckedBy is a command that shows what is wrong when there is no link.
	CheckedBy string
}

// A scheme is a kind of targets: how its launcher is called. In the arguments {user}, {host}, {port}, {first} and
// {container} stand for parts of the target; an argument whose part is empty is left out, with those that it is joined
// to by blanks.
type scheme struct {
	form, example string
	pattern       *regexp.Regexp // with the parts as named groups, and the root as path
	argv          []string
	check         string
}

const hostPart, namePart = `[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9a-fA-F:.%]+\]`, `[A-Za-z0-9_][A-Za-z0-9_.-]*`

// schemes are the kinds of targets, by what they begin with.
var schemes = map[string]scheme{
	"ssh://": {
		form: "ssh://[USER@]HOST[:PORT][/PATH]", example: "ssh://me@box/home/me/project",
		pattern: regexp.MustCompile(`^(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.\\-]*)@)?(?P<host>` + hostPart + `)(?::(?P<port>[0-9]+))?(?P<path>/.*)?$`),
		argv: []string{"ssh", "-T", "-o BatchMode=yes", "-o ConnectTimeout=15", "-o ServerAliveInterval=15", "-o ServerAliveCountMax=2",
			"-p {port}", "-l {user}", "-- {host}", "sh"},
		check: "ssh -o BatchMode=yes {host} true",
	},
	"docker://": {
		form: "docker://[USER@]CONTAINER[/PATH]", example: "docker://app/src",
		pattern: container, argv: []string{"docker", "exec", "-i", "-u {user}", "{host}", "sh"}, check: "docker exec -i {host} sh -c true",
	},
	"podman://": {
		form: "podman://[USER@]CONTAINER[/PATH]", example: "podman://app/src",
		pattern: container, argv: []string{"podman", "exec", "-i", "-u {user}", "{host}", "sh"}, check: "podman exec -i {host} sh -c true",
	},
	"k8s://": {
		form: "k8s://[CONTEXT@]NAMESPACE/POD[:CONTAINER][/PATH]", example: "k8s://team/app-0:dev/src",
		pattern: regexp.MustCompile(`^(?:(?P<user>[^@/ -][^@ ]*)@)?(?P<first>` + namePart + `)/(?P<host>` + namePart + `)(?::(?P<container>` + namePart + `))?(?P<path>/.*)?$`),
		argv:    []string{"kubectl", "--context {user}", "-n {first}", "exec", "-i", "{host}", "-c {container}", "--", "sh"},
		check:   "kubectl -n {first} exec {host} -- true",
	},
	"wsl://": {
		form: "wsl://DISTRIBUTION[/PATH]", example: "wsl://Ubuntu/home/me/project",
		pattern: container, argv: []string{"wsl.exe", "-d {host}", "--", "sh"}, check: "wsl.exe -d {host} -- true",
	},
}

// container matches the targets that are a name and a path.
var container = regexp.MustCompile(`^(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.:-]*)@)?(?P<host>` + namePart + `)(?P<path>/.*)?$`)

// The kinds of targets whose rest has no parts.
const (
	commandTarget      = "cmd:"
	devcontainerTarget = "devcontainer:"
)

// Targets lists the forms of targets.
func Targets() []string {
	forms := []string{"devcontainer:DIR", "cmd:'COMMAND …'"}
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
			err = fmt.Errorf("%s: name the command that starts its arguments there, such as cmd:'sudo -u build'", target)
		}
		t.Argv, t.CheckedBy = append(t.Argv, "sh"), rest+" sh -c true"
		return t, err
	}
	if dir, ok := strings.CutPrefix(target, devcontainerTarget); ok {
		if dir == "" {
			dir = "."
		}
		t.Argv, t.CheckedBy = []string{"devcontainer", "exec", "--workspace-folder", dir, "sh"}, "devcontainer up --workspace-folder "+dir
		return t, nil
	}
	name, rest, _ := strings.Cut(target, "://")
	s, known := schemes[name+"://"]
	if !known {
		return t, fmt.Errorf("%q is not a target: use one of %s", target, strings.Join(Targets(), ", "))
	}
	rest, err = url.PathUnescape(rest)
	parts := s.pattern.FindStringSubmatch(rest)
	if err != nil || parts == nil || strings.ContainsAny(rest, "\x00\n\r") {
		return t, fmt.Errorf("%q is not a target of the form %s, such as %s", target, s.form, s.example)
	}
	fill := func(text string) (string, bool) {
		for i, name := range s.pattern.SubexpNames() {
			if strings.Contains(text, "{"+name+"}") && name != "" {
				value := parts[i]
				if name == "host" {
					value = strings.Trim(value, "[]")
				}
				return strings.ReplaceAll(text, "{"+name+"}", value), value != ""
			}
		}
		return text, !strings.Contains(text, "{")
	}
	for _, group := range s.argv {
		option, value, joined := strings.Cut(group, " ")
		if !joined {
			option, value = "", group
		}
		value, present := fill(value)
		switch {
		case !present:
		case joined:
			t.Argv = append(t.Argv, option, value)
		default:
			t.Argv = append(t.Argv, value)
		}
	}
	t.CheckedBy = s.check
	for again := true; again; {
		before := t.CheckedBy
		t.CheckedBy, _ = fill(before)
		again = t.CheckedBy != before
	}
	t.Root = parts[s.pattern.SubexpIndex("path")]
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
