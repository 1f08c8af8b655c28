package credential

import (
	_ "embed"
	"encoding/base64"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed readers.txt
var readerTable string

// A reader finds secrets of one kind in a file.
type reader struct {
	end     string // of the file's path
	written string // how: plain, base64 or basic
	find    *regexp.Regexp
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
	_, values := MaskFile(path, text, "", nil)
	return len(values), nil
}

// MaskFile returns the text of a file with sentinels in the place of its secrets, and the values by sentinel. extract
// is a regular expression whose group is a secret; "": the readers for the file find them.
func MaskFile(path, text, extract string, hosts []string) (masked string, values map[string]string) {
	list := readersOf(path)
	if find, err := regexp.Compile(extract); extract != "" && err == nil {
		list = []reader{{written: "plain", find: find}}
	}
	sentinels := map[string]string{}
	values = map[string]string{}
	sentinel := func(value string) string {
		s, known := sentinels[value]
		if !known {
			s = Sentinel(value, hosts)
			sentinels[value], values[s] = s, value
		}
		return s
	}
	for _, r := range list {
		found := r.find.FindAllStringSubmatchIndex(text, -1)
		for _, at := range slices.Backward(found) {
			if len(at) < 4 || at[2] < 0 || values[text[at[2]:at[3]]] != "" { // that was masked before
				continue
			}
			text = text[:at[2]] + r.mask(text[at[2]:at[3]], sentinel) + text[at[3]:]
		}
	}
	hidden := slices.SortedFunc(maps.Keys(sentinels), func(a, b string) int { return len(b) - len(a) })
	for _, value := range hidden { // a comment may repeat it
		if len(value) >= leastRepeated {
			text = strings.ReplaceAll(text, value, sentinels[value])
		}
	}
	return text, values
}

// leastRepeated is the length of the shortest value that is looked for everywhere in its file.
const leastRepeated = 8

// mask returns what stands in the place of a secret as it is written.
func (r reader) mask(written string, sentinel func(string) string) string {
	if r.written == "plain" {
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
