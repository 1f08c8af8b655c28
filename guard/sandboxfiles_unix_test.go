//go:build unix

package guard

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

func TestCommandFiles(t *testing.T) {
	top, ws := workspace(t)
	tree(t, top, "ws/sec[", "here -> "+top)
	entries := func(texts string) (out []settings.Entry) {
		for text := range strings.FieldsSeq(texts) {
			out = append(out, settings.Entry{Text: strings.ReplaceAll(text, "$TOP", top), File: "settings.json",
				Line: 1, Root: ws})
		}
		return out
	}
	for _, tt := range []struct {
		why                                        string
		denyRead, allowRead, denyWrite, allowWrite string
		want, wantNot                              string // LIST:path below top
		warns                                      string
	}{
		{why: "a path of each kind", denyRead: "secrets $TOP/out //etc/nothing", denyWrite: "src", allowWrite: "$TOP/more",
			want: "Denied:ws/secrets Denied:out ReadOnly:ws/src Writable:more Writable:ws"},
		{why: "the home directory", denyRead: "~/notes", want: "Denied:home/notes"},
		{why: "wildcards in the workspace", denyRead: "**/*.md", denyWrite: "src/*.go", want: "Denied:ws/README.md Denied:ws/environment.md ReadOnly:ws/src/main.go", wantNot: "ReadOnly:ws/src"},
		{why: "a part is open", denyRead: "secrets", allowRead: "secrets/public", want: "Masked:ws/secrets Shown:ws/secrets/public", wantNot: "Denied:ws/secrets"},
		{why: "a part of what a wildcard means is open", denyRead: "**/secrets", allowRead: "secrets/public", want: "Masked:ws/secrets Shown:ws/secrets/public", wantNot: "Denied:ws/secrets"},
		{why: "all is open again", denyRead: "secrets/key", allowRead: "secrets", wantNot: "Denied:ws/secrets/key Masked:ws/secrets/key"},
		{why: "around the workspace", denyRead: "$TOP", allowRead: ".", want: "Masked:", wantNot: "Denied:ws Shown:ws"},
		{why: "around the workspace, by another name", denyRead: "$TOP/here", allowRead: "$TOP/here/ws", want: "Masked:", wantNot: "Denied:here Denied: Denied:ws"},
		{why: "the workspace as well", denyRead: "$TOP", allowRead: "$TOP/out", want: "Masked: Shown:out Denied:ws"},
		{why: "with everything in it", denyRead: "$TOP/out/**", denyWrite: "src/**", want: "Denied:out ReadOnly:ws/src"},
		{why: "by another name", denyRead: "secretdir", want: "Denied:ws/secrets"},
		{why: "nothing is there yet", denyRead: "later", denyWrite: "dist", allowWrite: "$TOP/none", want: "Denied:ws/later ReadOnly:ws/dist", wantNot: "Writable:none"},
		{why: "around a root", allowWrite: "$TOP", want: "Writable: ReadOnly:ws/.git/hooks", wantNot: "Writable:ws"},
		{why: "hooks in what is open", allowWrite: "$TOP/ws/.git/..", want: "Writable:ws ReadOnly:ws/.git/hooks"},
		{why: "wildcards open nothing", allowRead: "sec*", allowWrite: "$TOP/mo*", wantNot: "Writable:more", warns: "without wildcards"},
		{why: "a link in the workspace opens nothing", denyRead: "$TOP/out", allowRead: "outdir", allowWrite: "outdir", want: "Denied:out", wantNot: "Writable:out Shown:out", warns: "name the directory itself"},
		{why: "what no sandbox can open", allowWrite: "/ /dev/shm $TOP/more", want: "Writable:more Writable:ws", warns: "/dev/shm cannot be opened"},
		{why: "an unusable pattern", denyRead: "sec[", want: "Denied:ws/sec[", warns: "literal path"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			set := testRules(ws, "")
			files := &set.Sandbox.Filesystem
			files.DenyRead, files.AllowRead = entries(tt.denyRead), entries(tt.allowRead)
			files.DenyWrite, files.AllowWrite = entries(tt.denyWrite), entries(tt.allowWrite)
			p := policy(t, ws, set)
			got := p.Commands().SandboxPaths()
			has := func(item string) bool {
				name, path, _ := strings.Cut(item, ":")
				lists := map[string][]string{"Writable": got.Writable, "ReadOnly": got.ReadOnly, "Denied": got.Denied,
					"Masked": got.Masked, "Shown": got.Shown}
				return slices.Contains(lists[name], filepath.Join(top, path))
			}
			for item := range strings.FieldsSeq(tt.want) {
				if !has(item) {
					t.Errorf("%s is missing: %+v", item, got)
				}
			}
			for item := range strings.FieldsSeq(tt.wantNot) {
				if has(item) {
					t.Errorf("%s is there: %+v", item, got)
				}
			}
			if warned := strings.Join(p.Warnings(), "\n"); !strings.Contains(warned, tt.warns) || tt.warns == "" &&
				warned != "" {
				t.Errorf("warnings %q, want %q", warned, tt.warns)
			}
		})
	}
}

// TestWithheld: a file that appears is known for one that commands are denied.
func TestWithheld(t *testing.T) {
	_, ws := workspace(t)
	set := testRules(ws, "deny Read(.env)")
	set.Sandbox.Filesystem.DenyRead = []settings.Entry{{Text: "**/*.pem", Root: ws}, {Text: "priv", Root: ws}}
	set.Sandbox.Filesystem.AllowRead = []settings.Entry{{Text: "open", Root: ws}}
	p := policy(t, ws, set)
	for name, want := range map[string]bool{".env": true, "sub/a.pem": true, "priv": true, "open/a.pem": false,
		"a.pub": false} {
		if got := p.Commands().Denied(filepath.Join(ws, name), false); got != want {
			t.Errorf("Withheld(%s) = %v", name, got)
		}
	}
	if !p.Commands().DeniesFiles() || p.Hidden(filepath.Join(ws, "a.pem"), false) {
		t.Error("what only commands are denied is denied to tools, or to nobody")
	}
}
