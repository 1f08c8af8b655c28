package command

import "strings"

// Quote writes a text so that a shell takes it for one word that stands for itself.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Loads returns the words of the command that name files whose content runs, if they are
// files: the program by its path, and what is given to a program that runs it. More may be
// among them.
func (c Simple) Loads() []Word {
	var files []Word
	for i, word := range c.Args {
		switch {
		case i == 0 && strings.Contains(word.Text, "/"), i > 0 && c.loads():
			files = append(files, word)
		}
	}
	return files
}

// loads reports whether a program runs what files hold that it is given.
func (c Simple) loads() bool {
	return c.Interpreted() || oneOf(c.Name, "bash sh dash ash rbash zsh ksh mksh fish csh tcsh source . exec env npx bunx pnpx npm pnpm yarn uv uvx pipx poetry pipenv hatch rye go dotnet java mise nix make just task")
}
