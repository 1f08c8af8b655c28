package credential

import (
	"cmp"
	_ "embed"
	"encoding/base64"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"
)

//go:embed readers.txt
var readerTable string

// A reader finds secrets of one kind in a file, or the hosts that they are for.
type reader struct {
	end     string // of the file's path
	written string // how the value is written: plain, base64, basic or signs. isHost: the reader finds hosts instead.
	find    *regexp.Regexp
}

// isHost marks a reader of hosts.
const isHost = "host"

// signs marks a reader of keys that only sign requests.
const signs = "signs"

// Signs reports whether a variable holds a key that only signs requests.
func Signs(variable string) bool { return strings.HasSuffix(variable, "SECRET_ACCESS_KEY") }

// A Found secret is one in a file.
type Found struct {
	Sentinel, Value string
	// Hosts are the hosts of the mask that get the value. If the file says for which host it is, only hosts of the
	// same domain get it.
	Hosts []string
	// Signs says that it only signs requests.
	Signs bool
}

var readers = sync.OnceValue(func() (list []reader) {
	for line := range strings.Lines(readerTable) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(fields) == 3 && fields[0] != "#" {
			list = append(list, reader{fields[0], fields[1], regexp.MustCompile(fields[2])})
		}
	}
	return list
})

// readersOf returns the readers for a file.
func readersOf(path string) (list []reader) {
	path = "/" + filepath.ToSlash(path)
	for _, r := range readers() {
		if strings.HasSuffix(path, "/"+r.end) {
			list = append(list, r)
		}
	}
	return list
}

// HasReader reports whether secrets in a file are found without a regular expression of the person.
func HasReader(path string) bool { return len(readersOf(path)) > 0 }

// Count returns how many secrets are found in a file that has a reader.
func Count(path string) (int, error) {
	text, err := readAll(path)
	if err != nil {
		return 0, err
	}
	_, found := MaskFile(path, text, "", nil)
	return len(found), nil
}

// MaskFile returns the text of a file with sentinels in place of its secrets, and the secrets. extract is a regular
// expression whose group is a secret; if it is "", the readers for the file find them. hosts are the hosts of the
// mask.
func MaskFile(path, text, extract string, hosts []string) (masked string, found []*Found) {
	list := readersOf(path)
	if find, err := regexp.Compile(extract); extract != "" && err == nil {
		list = []reader{{written: "plain", find: find}}
	}
	byValue, sentinels := map[string]*Found{}, map[string]bool{}
	for _, r := range list {
		if r.written == isHost {
			continue
		}
		of := hostsIn(text, list)
		for _, at := range slices.Backward(r.find.FindAllStringSubmatchIndex(text, -1)) {
			if len(at) < 4 || at[2] < 0 || sentinels[text[at[2]:at[3]]] { // it was masked before
				continue
			}
			text = text[:at[2]] + r.mask(text[at[2]:at[3]], func(value string) string {
				f := byValue[value]
				if f == nil {
					f = &Found{Sentinel: Sentinel(value, hosts), Value: value}
					byValue[value], sentinels[f.Sentinel] = f, true
				}
				f.Signs = f.Signs || r.written == signs
				f.Hosts = append(f.Hosts, of(at[2], hosts)...)
				return f.Sentinel
			}) + text[at[3]:]
		}
	}
	found = slices.SortedFunc(maps.Values(byValue), func(a, b *Found) int {
		return cmp.Or(len(b.Value)-len(a.Value), strings.Compare(a.Value, b.Value))
	})
	for _, f := range found { // a comment may repeat it
		if len(f.Value) >= leastRepeated {
			text = strings.ReplaceAll(text, f.Value, f.Sentinel)
		}
		slices.Sort(f.Hosts)
		f.Hosts = slices.Compact(f.Hosts)
	}
	return text, found
}

// hostsIn finds the hosts that a file names. It returns a function that selects, of the hosts of a mask, those in the
// domain of the last host named before a place in the text. If none is named before it, all hosts are selected.
func hostsIn(text string, list []reader) func(at int, hosts []string) []string {
	var named [][]int
	for _, r := range list {
		if r.written == isHost {
			named = append(named, r.find.FindAllStringSubmatchIndex(text, -1)...)
		}
	}
	return func(at int, hosts []string) []string {
		own := ""
		for _, n := range named {
			if n[0] > at {
				break
			}
			if own = ""; n[2] >= 0 {
				own = text[n[2]:n[3]]
			}
		}
		if own == "" {
			return hosts
		}
		return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return domain(host) != domain(own) })
	}
}

// domain returns the part of a host that has one owner: services often take a token at other hosts of their domain.
func domain(host string) string {
	host, _, _ = strings.Cut(strings.TrimPrefix(strings.ToLower(host), "*."), ":")
	if owned, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return owned
	}
	return host
}

// leastRepeated is the length of the shortest value that is looked for everywhere in its file.
const leastRepeated = 8

// mask returns what replaces a secret, encoded as the secret is in the file.
func (r reader) mask(written string, sentinel func(string) string) string {
	if r.written == "plain" || r.written == signs {
		return sentinel(written)
	}
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(written, "="))
	if err != nil { // it is hidden all the same
		return sentinel(written)
	}
	user, value := "", string(decoded)
	if r.written == "basic" {
		name, password, ok := strings.Cut(value, ":")
		if !ok {
			return sentinel(written)
		}
		user, value = name+":", password
	}
	return base64.StdEncoding.EncodeToString([]byte(user + sentinel(value)))
}
