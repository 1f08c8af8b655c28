//go:build unix

package shell

import (
	"os"
	"strings"
	"testing"
)

// A command has the editor that it names, and otherwise one that fails at once, whatever the settings of git say.
func TestEditor(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(home+"/.gitconfig", []byte("[core]\n\teditor = echo mine\n[sequence]\n\teditor = echo steps\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"settings": home, "none": t.TempDir()}
	const all = "git var GIT_EDITOR; echo ${GIT_SEQUENCE_EDITOR-none}; echo ${VISUAL:-$EDITOR}"
	for _, c := range []struct{ home, text, want string }{
		{"settings", all, "false false false"},
		{"none", all, "false false false"},
		{"settings", "git -c core.editor=true var GIT_EDITOR", "true"},
		{"settings", "git --config-env=core.editor=HOME var GIT_EDITOR", home},
		{"settings", "git -c sequence.editor=: var GIT_EDITOR; echo ${GIT_SEQUENCE_EDITOR-none}", "false none"},
		{"settings", "VISUAL=x; git var GIT_EDITOR", "echo mine"}, // as without a sandbox
		{"none", "EDITOR=x git var GIT_EDITOR; git var GIT_EDITOR", "x false"},
		{"none", "export EDITOR=x; " + all, "x none x"},
		{"none", "export VISUAL=x\necho $VISUAL; git var GIT_EDITOR", "x false"}, // of a dumb terminal
		{"none", "GIT_EDITOR=x git var GIT_EDITOR; echo ${GIT_SEQUENCE_EDITOR-none}; git var GIT_EDITOR", "x none false"},
		{"none", "GIT_SEQUENCE_EDITOR=x; git var GIT_EDITOR", "false"},
		{"none", "MYEDITOR=x; MY_EDITOR=x; git var GIT_EDITOR", "false"},
		{"none", "echo EDITOR; git var GIT_EDITOR; echo $GIT_SEQUENCE_EDITOR", "EDITOR false false"},
	} {
		r := newRunner(t, Config{InheritPath: true, Env: append(os.Environ(), "HOME="+names[c.home], "VISUAL=vi", "EDITOR=vi")})
		got := run(t, r, Command{Text: c.text, Dir: "/"})
		if strings.Join(strings.Fields(got.Text), " ") != c.want {
			t.Errorf("%s, %s: %q, want %q", c.home, c.text, got.Text, c.want)
		}
	}
	r := newRunner(t, Config{InheritPath: true, Set: []string{"GIT_EDITOR=person", "VISUAL=person"}})
	got := run(t, r, Command{Text: "EDITOR=x; git var GIT_EDITOR; echo $VISUAL", Dir: "/"})
	if got.Text != "person\nperson\n" {
		t.Errorf("the editor of the settings: %q", got.Text)
	}
}
