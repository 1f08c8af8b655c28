package clients

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// fuzzEdit puts toolhost into whatever parses and takes it out again. Beside the checks of the package itself,
// it decodes with the libraries directly and looks for every byte that was there.
func fuzzEdit(f *testing.F, c Client, decode func([]byte) (map[string]any, error)) {
	for _, s := range samplesOf(c) {
		f.Add([]byte(s.body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		state, _, err := c.inspect(raw, local)
		if err != nil || state != Absent {
			return
		}
		with, err := c.put(raw, local, false)
		if err != nil {
			return // refused
		}
		if state, _, err := c.inspect(with, local); err != nil || state != Ours {
			t.Fatalf("%q became %q: %s, %v", raw, with, state, err)
		}
		if !contains(with, raw) {
			t.Errorf("%q became %q: something was lost", raw, with)
		}
		if again, err := c.put(with, local, false); err != nil || !bytes.Equal(again, with) {
			t.Errorf("%q the second time became %q: %v", with, again, err)
		}
		without, err := c.take(with, local.Name)
		if err != nil {
			return
		}
		_, was := cutBOM(raw)
		_, is := cutBOM(without)
		before, err := decode(was)
		if err != nil {
			return // more strict than we are
		}
		after, err := decode(is)
		if err != nil {
			t.Fatalf("%q became %q: %v", raw, without, err)
		}
		for _, m := range []map[string]any{before, after} {
			if v, ok := m[c.Container].(map[string]any); m[c.Container] == nil || ok && len(v) == 0 {
				delete(m, c.Container)
			}
		}
		if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) &&
			!bytes.Contains(bytes.ToLower(raw), []byte("nan")) {
			t.Errorf("%q became %q", raw, without)
		}
	})
}

// contains reports whether all bytes of part but blanks and an empty pair of braces stand in whole, in order.
func contains(whole, part []byte) bool {
	for _, b := range []byte(strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "{", "", "}",
		"").Replace(string(part))) {
		i := bytes.IndexByte(whole, b)
		if i < 0 {
			return false
		}
		whole = whole[i+1:]
	}
	return true
}

func FuzzJSON(f *testing.F) {
	fuzzEdit(f, known("zed"), func(body []byte) (map[string]any, error) {
		if len(bytes.TrimSpace(body)) == 0 {
			return map[string]any{}, nil
		}
		body, err := hujson.Standardize(bytes.Clone(body))
		if err != nil {
			return nil, err
		}
		var m map[string]any
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		return m, dec.Decode(&m)
	})
}

func FuzzTOML(f *testing.F) {
	fuzzEdit(f, known("codex"), func(body []byte) (map[string]any, error) {
		m := map[string]any{}
		return m, toml.Unmarshal(body, &m)
	})
}

func FuzzYAML(f *testing.F) {
	fuzzEdit(f, known("goose"), func(body []byte) (map[string]any, error) {
		m := map[string]any{}
		return m, yaml.Unmarshal(body, &m)
	})
}
