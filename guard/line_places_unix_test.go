//go:build unix

package guard

import (
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestPlaces asks that a command is judged in the directories that it may run in,
// and in no others where the line begins with cd … &&.
func TestPlaces(t *testing.T) {
	const all = "rm -rf *" // asked for in a root
	tests := []struct {
		command string
		want    Action
	}{
		{"cd src && " + all, Allow},
		{"cd src && cd . && " + all, Allow},
		{"cd -- src && " + all, Ask},
		{"cd src && ls && " + all, Allow},
		{"cd src || exit 1; " + all, Allow},
		{"cd src || exit\nls\n" + all, Allow},
		{"cd src || exit 1; cd .. || exit 1; " + all, Ask},
		{"cd src || exit 1; cd .; " + all, Ask},
		{"cd src || exit 1; (cd ..; " + all + ")", Ask},
		{"cd src || { exit 1; }; " + all, Ask}, // only exit itself
		{"cd src || exit 1 & " + all, Ask},
		{"! cd src || exit 1; " + all, Ask},
		{"cd src && ls || exit 1; " + all, Allow},
		{"cd src || ls || exit 1; " + all, Ask},
		{"(cd src || exit 1); " + all, Ask},
		{"(cd src || exit 1; " + all + ")", Allow},
		{"exit() { :; }; cd src || exit 1; " + all, Ask},
		{"cd src || exit 1 > \"$(" + all + ")\"", Ask},
		{"cd src || exit 1; ln -s / x; cd x && " + all, Ask},
		{"(cd src && " + all + ")", Allow},
		{"(cd src && ls && " + all + "); ls", Allow},
		{"(cd src && ls; " + all + ")", Ask},
		{"(cd src && ls && cd .. && " + all + ")", Ask},
		{"(cd src && ls) && " + all, Ask},
		{"(cd src && ls) && cd src && " + all, Ask},
		{"f() { " + all + "; }; (cd src && f)", Ask},
		{"{ cd src; } && " + all, Allow},
		{"{ cd src && ls; } && " + all, Allow},
		{"{ cd src; } > x && " + all, Ask},
		{"{ cd src; } & " + all, Ask},
		{"! { cd src; } && " + all, Ask},
		{"time cd src && " + all, Ask},
		{"cd src && if ls; then " + all + "; else " + all + "; fi", Allow},
		{"cd src && for i in 1 2; do " + all + "; done", Allow},
		{"cd src && echo $(" + all + ")", Allow},
		{"cd src && bash -c '" + all + "'", Allow},
		{"bash -c 'cd src && " + all + "'", Ask},
		{"cd src && timeout 5 " + all, Allow},
		{"cd src && x=$(" + all + ")", Allow},
		{"cd src && if ls; then for i in 1 2; do " + all + "; done; fi", Allow},

		{all, Ask},
		{"cd src; " + all, Ask},
		{"if cd src; then " + all + "; fi", Ask}, // only lists are followed
		{"x=$(cd src && " + all + ")", Ask},
		{"cd src && f() { " + all + "; }; cd ..; f", Ask},
		{"cd src\n" + all, Ask},
		{"cd src && x=$(cd ..\n" + all + ")", Ask},
		{"cd src && cat <(cd ..\n" + all + ")", Ask},
		{"cd src || " + all, Ask},
		{"cd src || true; " + all, Ask},
		{"cd src || exit 1 2; " + all, Ask}, // bash goes on: too many arguments
		{"cd src || exit x; " + all, Ask},
		{"cd src & " + all, Ask},
		{"cd src | " + all, Ask},
		{"cd src | cat && " + all, Ask},
		{"! cd src && " + all, Ask},
		{"(cd src) && " + all, Ask},
		{"cd src && ls || " + all, Ask},
		{"{ cd src; ls; } && " + all, Ask},
		{"{ cd src && ls; } > \"$(" + all + ")\"", Ask},
		{"{ cd src && ls; } > x; " + all, Ask},
		{"if cd src; then ls; else " + all + "; fi", Ask},
		{"if cd src; then ls; fi; " + all, Ask},
		{"while cd src; do ls; done; " + all, Ask},
		{"for i in src; do cd src && " + all + "; done", Ask},
		{"case a in a) cd src;; esac && " + all, Ask},
		{"f() { cd src; }; f && " + all, Ask},
		{"f() { " + all + "; }; cd src && f; cd .. && f", Ask},
		{"eval 'cd src' && " + all, Ask},
		{"cd src && eval 'cd ..; " + all + "'", Ask},
		{"trap '" + all + "' EXIT; cd src && ls", Ask},
		{"command cd src && " + all, Ask},
		{"CDPATH=..; cd src && " + all, Ask},
		{"CDPATH=.. cd src && " + all, Ask},
		{"export CDPATH=..\ncd src && " + all, Ask},
		{"cd src && CDPATH=.. bash -c 'cd src && " + all + "'", Ask},
		{"shopt -s cdable_vars; away=..; cd away && " + all, Ask},
		{"alias cd='cd ..;'\ncd src && " + all, Ask},
		{". ./env && cd src && " + all, Ask},
		{"source env; cd src && " + all, Ask},
		{"pushd src && " + all, Ask},
		{"cd src && cd - && " + all, Ask},
		{"cd src && cd .. && " + all, Ask},
		{"cd outdir && cd .. && " + all, Ask}, // bash goes back along the names
		{"cd src && cd ./../src/.. && " + all, Ask},
		{"cd src && bash -c 'cd ..; " + all + "'", Ask},
		{"cd src && env -C .. " + all, Ask},
		{"cd '' && " + all, Ask},
		{"cd -P && " + all, Ask}, // the home directory
		{"cd -- && " + all, Ask},
		{"cd src && cd -L && " + all, Ask},
		{"cd src x && " + all, Ask},
		{"cd $X && " + all, Ask},
		{"exit; " + all, Ask},
		{"ln -sfn / src && cd src && " + all, Ask},
		{"cd src && ln -s / x && " + all, Allow},
		{"cd src && find . -exec ln -s / x ';' && cd x && " + all, Ask},
		{"cd src && ls \"$(ln -s / x)\" && cd x && " + all, Ask},
		{"rm -rf \"${PWD:?}\"", Ask},
		{"D=..; rm -rf \"${D:?}\"/ws", Ask},
		{"c\\d src; " + all, Ask},
	}
	_, ws := workspace(t)
	set := testRules(ws, "mode default\nallow Bash")
	set.Sandbox.OnUnavailable = settings.OnFailureAllow
	p := policy(t, ws, set, uncontained)
	for _, tt := range tests {
		if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: tt.command, Dir: resolve(t, p, ".")}}}); v.Action != tt.want {
			t.Errorf("%q: %v by %q, want %v: %s", tt.command, v.Action, v.Rule, tt.want, v.Reason)
		}
	}
}

// TestPlacesOfFiles asks the same of rules on files.
func TestPlacesOfFiles(t *testing.T) {
	tests := []struct {
		rules, command string
		want           Action
	}{
		{"deny Read(/.env)", "cd src && cat .env", Allow},
		{"deny Read(/.env)", "cd src && mkdir -p new && cd new && cat .env", Allow},
		{"deny Read(/.env)", "cd src && ls && cd ../new && cat .env", Allow},
		{"deny Read(/.env)", "cd src && ls && cd .. && cat .env", Deny},
		{"deny Read(/.env)", "cd src; cat .env", Deny},
		{"deny Read(/.env)", "cd src && cat ../.env", Deny},
		{"deny Read(/.env)", "cd src && cat < ../.env", Deny},
		{"deny Read(/.env)", "cd outdir && cd .. && cat .env", Deny},
		{"deny Edit(/new)", "cd src && echo x > new", Allow},
		{"deny Edit(/new)", "cd src && echo x > ../new", Deny},
		{"deny Edit(/src/new)", "cd src && echo x > new", Deny},
		{"deny Edit(/src/new)", "cd src && bash -c 'echo x > new'", Deny},
		{"deny Edit(/new)", "cd src; echo x > new", Deny},
		{"mode plan", "cd src && ls && cd .. && cat README.md", Allow},
		{"mode acceptEdits", "cd src && rm ../README.md", Allow},
		{"mode acceptEdits", "cd src; rm ../README.md", Ask},
		{"mode acceptEdits", "cd src && rm ../../out/f", Ask},
		{"mode acceptEdits", "cd src && echo x > ../new", Allow},
		{"mode acceptEdits", "cd src && echo x > ../../out/new", Ask},
	}
	_, ws := workspace(t)
	for _, tt := range tests {
		set := testRules(ws, tt.rules)
		set.Sandbox.OnUnavailable = settings.OnFailureAllow
		p := policy(t, ws, set, uncontained)
		if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: tt.command, Dir: resolve(t, p, ".")}}}); v.Action != tt.want {
			t.Errorf("%s: %q: %v by %q, want %v: %s", tt.rules, tt.command, v.Action, v.Rule, tt.want, v.Reason)
		}
	}
}
