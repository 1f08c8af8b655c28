package jsonrpc

import (
	"strings"
	"testing"
)

// A message with very many members is refused before it is decoded; one with a long text, or many elements, is not.
func TestCrowded(t *testing.T) {
	call := func(arguments string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"Read","arguments":` +
			arguments + `}}`)
	}
	_, invalid := Open(call("{" + strings.Repeat(`"k":1,`, maxMembers) + `"k":1}`))
	if invalid == nil || !strings.Contains(invalid.Text, "members") || string(invalid.ID) != "7" {
		t.Errorf("many members: %+v", invalid)
	}
	for name, arguments := range map[string]string{
		"text":     `{"a":"` + strings.Repeat(`: \" `, maxMembers) + `"}`,
		"elements": `{"a":[` + strings.Repeat(`12345,`, maxMembers) + `0]}`,
	} {
		if _, invalid := Open(call(arguments)); invalid != nil {
			t.Errorf("%s: %s", name, invalid.Text)
		}
	}
}
