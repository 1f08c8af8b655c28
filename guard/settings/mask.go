package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/publicsuffix"

	"github.com/toolhost/toolhost/guard/credential"
)

// A Mask is a credential that commands see as a sentinel. Requests to some hosts get the value.
type Mask struct {
	// Entry is where it was written; its Text is the variable or the path.
	Entry Entry `json:"-"`
	// InjectHosts are the hosts that get the value, as in allowedDomains.
	InjectHosts []string `json:"injectHosts"`
	// Body has the value put into forms, too, as clients of OAuth send them.
	Body bool `json:"body"`
	// Header is the header that WebFetch sends to the hosts, such as "Authorization: Bearer $", with $ for the value;
	// "" if it sends none.
	Header string `json:"header"`
	// Extract is a regular expression whose group is a secret in a file; "": a built-in reader finds them.
	Extract string `json:"extract"`
	// File and Command say where the value of a variable is: in a file, or in the output of a command. If both are "",
	// it is in the environment.
	File    string `json:"file"`
	Command string `json:"command"`
}

// CheckMask reports what is wrong with the JSON object of an entry of a list of sandbox.credentials.
func CheckMask(list, object string) error {
	_, err := maskOf(Entry{Text: maskedBy(list, object), Object: object}, newKeySet().byName[list].member)
	return err
}

// maskedBy returns what the JSON object of an entry of a list masks; "" if the list has no such entries.
func maskedBy(list, object string) string {
	var members map[string]any
	k := newKeySet().byName[list]
	if k == nil || k.member == "" || json.Unmarshal([]byte(object), &members) != nil {
		return ""
	}
	name, _ := members[k.member].(string)
	return name
}

// variableName matches the names of variables that shells know.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maskOf decodes the JSON object of an entry, which the member names.
func maskOf(e Entry, member string) (m Mask, err error) {
	if err := json.Unmarshal([]byte(e.Object), &m); err != nil {
		return m, errors.New("it has a member of another type than is expected")
	}
	m.Entry = e
	switch {
	case len(m.InjectHosts) == 0:
		return m, errors.New(`it has no "injectHosts", the hosts that get the value`)
	case m.File != "" && m.Command != "":
		return m, errors.New(`it has both "file" and "command"`)
	case member == "name" && !variableName.MatchString(e.Text):
		return m, fmt.Errorf("%q is not the name of a variable", e.Text)
	case member == "path" && m.Extract == "" && !credential.HasReader(e.Text):
		return m,
			errors.New(`what is secret in it is not known: add "extract", a regular expression whose group is the secret`)
	}
	for _, host := range m.InjectHosts {
		if name := strings.TrimPrefix(host, "*."); name == "" || strings.Contains(name, "*") {
			return m, fmt.Errorf("the inject host %q would send it to any host", host)
		}
		if anybodys(host) {
			return m, fmt.Errorf("the inject host %q would send it to hosts of anybody; name the hosts", host)
		}
	}
	if name, value, ok := strings.Cut(m.Header, ": "); m.Header != "" &&
		(!ok || !httpguts.ValidHeaderFieldName(name) || strings.Count(value, "$") != 1) {
		return m, fmt.Errorf(`"header" is %q; a header such as "Authorization: Bearer $" is expected`, m.Header)
	}
	if m.Extract != "" {
		if x, err := regexp.Compile(m.Extract); err != nil || x.NumSubexp() != 1 {
			return m, fmt.Errorf(`"extract" is %q; a regular expression with one group is expected`, m.Extract)
		}
	}
	return m, nil
}

// anybodys reports whether a pattern means the subdomains of a name below which anybody gets one, as *.github.io.
func anybodys(pattern string) bool {
	name, wild := strings.CutPrefix(strings.ToLower(pattern), "*.")
	name, _, _ = strings.Cut(name, ":")
	suffix, listed := publicsuffix.PublicSuffix(name)
	// Other suffixes belong to private networks.
	return wild && suffix == name && (listed || strings.Contains(name, "."))
}

// masks returns the masks among the entries of a list. Only settings of a person can make one, because it spends the
// person's credential. An entry that denies the credential has precedence. A wrong mask causes a warning, and the
// credential is denied.
func (m *merger) masks(member string, list []Entry, allowed []string) (masks []Mask) {
	done := map[string]bool{}
	for _, e := range list {
		if e.Object == "" { // of any source
			done[e.Text] = true
		}
	}
	for _, e := range list {
		if e.Object == "" || done[e.Text] {
			continue
		}
		if e.Kind.inWorkspace() {
			m.warn(e, "%s: a mask counts from user and managed settings only. It is denied, unless these mask it",
				e.Text)
			continue
		}
		done[e.Text] = true
		mask, err := maskOf(e, member)
		if err == nil {
			for _, host := range mask.InjectHosts {
				if !slices.ContainsFunc(allowed, func(pattern string) bool { return covers(pattern, host) }) {
					err = fmt.Errorf("the inject host %s is not in sandbox.network.allowedDomains (toolhost allow-host %s)", host,
						host)
				}
			}
		}
		if err != nil {
			m.warn(e, "the mask of %s has no effect: %v. It is denied", e.Text, err)
			continue
		}
		masks = append(masks, mask)
	}
	return masks
}

// covers reports whether a pattern of allowedDomains allows all hosts of another one.
func covers(pattern, host string) bool {
	pattern, host = strings.ToLower(pattern), strings.ToLower(host)
	name, _, _ := strings.Cut(host, ":")
	parent, wild := strings.CutPrefix(pattern, "*.")
	return pattern == host || pattern == name || pattern == "*" || wild && strings.HasSuffix(name, "."+parent)
}
