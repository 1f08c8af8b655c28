package command

import "strings"

// hasSubcommands are programs whose first operand says what they do. Rules name it
// right behind the program.
const hasSubcommands = "npm pnpm yarn bun pip pip3 uv poetry cargo go gh glab docker podman kubectl oc helm aws gcloud az terraform tofu systemctl brew apt apt-get dnf yum apk " +
	"gem bundle composer dotnet conda mamba svn hg fly heroku vercel netlify supabase firebase wrangler deno rustup nix snap flatpak ollama"

// subcommandNames are other names of the subcommands of npm, after the program and the
// name that rules use.
var subcommandNames = [...]struct{ program, name, others string }{
	{"npm", "install", "i add in ins inst insta instal isnt isnta isntal isntall"},
	{"npm", "ci", "clean-install ic install-clean"},
	{"npm", "uninstall", "un unlink remove rm r"},
	{"npm", "run", "run-script rum urn"},
	{"npm", "test", "t tst"},
	{"npm", "exec", "x"},
	{"npm", "update", "up upgrade udpate"},
	{"pnpm", "install", "i"}, {"pnpm", "remove", "rm uninstall un"}, {"pnpm", "update", "up upgrade"}, {"pnpm", "run", "run-script"},
	{"bun", "install", "i"}, {"bun", "remove", "rm"},
	{"cargo", "build", "b"}, {"cargo", "run", "r"}, {"cargo", "test", "t"},
}

// shortForms returns the spellings of a command that begin with its subcommand, as a
// deny rule does: without the options between (`docker --context x rm y` is `docker rm
// y`), and by the subcommand's usual name (`npm i` is `npm install`).
func shortForms(name string, args []Word) (forms []string) {
	if !oneOf(name, hasSubcommands) || len(args) < 2 {
		return nil
	}
	option := false
	for i, word := range args[1:] {
		if isOption(word.Text) || i == 0 && word.Text != "" && word.Text[0] == '+' { // cargo +nightly
			option = isOption(word.Text) && !strings.Contains(word.Text, "=")
			continue
		}
		if i > 0 {
			forms = append(forms, name+" "+join(args[i+1:]))
		}
		if usual := usualName(name, word.Text); usual != "" {
			forms = append(forms, strings.TrimSuffix(name+" "+usual+" "+join(args[min(i+2, len(args)):]), " "))
		}
		if !option { // else it may be the value of the option before it
			break
		}
		option = false
	}
	return forms
}

func usualName(program, name string) string {
	for _, s := range subcommandNames {
		if s.program == program && oneOf(name, s.others) {
			return s.name
		}
	}
	return ""
}
