package statedir

import (
	"encoding/json"
	"testing"
)

func TestNameText(t *testing.T) {
	for _, name := range []string{"", "a/b", "ü", `"`, `"a"`, `a"`, "\xff", "a\xfe/\"\n", "\ufffd", "\x01", `\xff`, "'"} {
		raw, err := json.Marshal(NameText(name))
		if err != nil {
			t.Fatal(err)
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			t.Fatal(err)
		}
		if got, err := TextName(text); got != name || err != nil {
			t.Errorf("%q came back as %q, %v", name, got, err)
		}
	}
	if _, err := TextName(`"a`); err == nil {
		t.Error("a text that was cut was taken")
	}
}
