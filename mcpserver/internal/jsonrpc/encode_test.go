package jsonrpc

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// checkEncoded compares Encode with json.Marshal.
func checkEncoded(t *testing.T, result any) {
	t.Helper()
	response := mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId("an id"), Result: result}
	want, err := json.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Encode(response)
	if err != nil {
		t.Fatal(err)
	}
	var wantValue, gotValue any
	if err := json.Unmarshal(want, &wantValue); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &gotValue); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if !reflect.DeepEqual(gotValue, wantValue) || strings.ContainsAny(string(got), "\n\r\u2028\u2029") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(text)}}
}

func TestEncode(t *testing.T) {
	marked := mcp.NewTextContent("marked")
	marked.Annotations = &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}}
	for name, result := range map[string]any{
		"text":        textResult("a\nb"),
		"empty":       textResult(""),
		"no content":  &mcp.CallToolResult{},
		"error":       &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(`{"content":[{"type":"text","text":""}]}`)}, IsError: true},
		"meta":        &mcp.CallToolResult{Result: mcp.Result{Meta: mcp.NewMetaFromMap(map[string]any{"text": ""})}, Content: []mcp.Content{mcp.NewTextContent("a")}},
		"structured":  &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("a")}, StructuredContent: map[string]any{"text": "b"}},
		"annotated":   &mcp.CallToolResult{Content: []mcp.Content{marked}},
		"image":       &mcp.CallToolResult{Content: []mcp.Content{mcp.NewImageContent("AAAA", "image/png"), mcp.NewTextContent("a")}},
		"text, image": &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("a"), mcp.NewImageContent("AAAA", "image/png")}},
		"other":       &mcp.EmptyResult{},
		"map":         map[string]any{"a": 1},
	} {
		t.Run(name, func(t *testing.T) { checkEncoded(t, result) })
	}
}

// TestEncodeCharacters puts each character at every offset within eight bytes.
func TestEncodeCharacters(t *testing.T) {
	interesting := []string{"→", "\u2028", "\u2029", "é", "😀", "\xff", "\xe2\x80", "\xed\xa0\x80", "\ufffd",
		"\x7f", "<", "&"}
	for c := range byte(0x80) {
		interesting = append(interesting, string(rune(c)))
	}
	for _, c := range interesting {
		for before := range 10 {
			checkEncoded(t, textResult(strings.Repeat("x", before)+c+"yz"+c+c))
		}
	}
}

func FuzzEncodeText(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\tb\r\n\"\\", "→\u2028\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { checkEncoded(t, textResult(text)) })
}
