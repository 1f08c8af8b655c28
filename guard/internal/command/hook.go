package command

import (
	"slices"
	"strings"
)

// Quote writes a text so that a shell takes it for one word that stands for itself.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// IsShell reports whether the command is a shell that reads scripts as bash does, or sources one.
func (c Simple) IsShell() bool {
	return oneOf(c.Name, "bash sh dash ash rbash source .")
}

// Scripts returns the files that such a command reads its commands from.
func (c Simple) Scripts() (files []Word) {
	if oneOf(c.Name, "source .") {
		return c.Args[1:min(len(c.Args), 2)]
	}
	for _, reason := range c.Undecidable {
		if file, ok := strings.CutPrefix(reason, c.Name+" "+runsFile); ok {
			files = append(files, c.Args[slices.IndexFunc(c.Args, func(w Word) bool { return w.Text == file })])
		}
	}
	return files
}

// TakesProgram reports whether the command is an interpreter of a language that this package does not read.
func (c Simple) TakesProgram() bool { return isInterpreter(c.Name) }

// Calls reports whether the command calls a function whose body is in the text.
func (c Simple) Calls() bool { return c.local }

// Known reports whether a program's name means something to this package, so that its words have to be looked at.
func Known(name string) bool { return known(name) }

// Talks reports whether the words of the command name no file whose content matters: the program prints them, compares
// them, or shows them to a person.
func (c Simple) Talks() bool {
	return oneOf(c.Name, "echo printf test [ true false : exit return break continue shift read set unset local declare typeset readonly export let wait "+
		"umask trap cd date basename dirname pwd tr seq sleep expr command type which hash uname whoami id hostname kill ls stat mkdir realpath readlink "+
		"notify-send osascript terminal-notifier growlnotify logger say espeak spd-say afplay paplay aplay pw-play canberra-gtk-play tput tmux")
}

// Writes reports whether the program changes the files that it is given, or follows them as links.
func (c Simple) Writes() bool {
	_, written := c.Paths()
	switch programs[c.Name].role {
	case writes, copies, moves, settings, outIn, inPlace:
		return !c.Talks()
	}
	return len(written) > 0 || oneOf(c.Name, "dd tar gtar bsdtar zip unzip")
}

// Starts reports whether a word of the command is the name of a program that runs what it is given or what the workspace says, so
// that the command may start it.
func (c Simple) Starts() (name string, ok bool) {
	for _, w := range c.Args[1:] {
		if w.Static && (ObeysWorkspace(w.Text) || isInterpreter(w.Text) || oneOf(w.Text, "bash sh dash ash zsh ksh fish env xargs find")) {
			return w.Text, true
		}
	}
	return "", false
}

// RunsAlone reports whether an interpreter that is given a script loads nothing from the directory it works in.
func (c Simple) RunsAlone() bool {
	return oneOf(strings.TrimRight(c.Name, "0123456789."), "python node nodejs perl ruby php lua luajit")
}

// UnknownProgram begins the reason why a command is undecidable whose program is a word that is not static.
const UnknownProgram = "the name of the program is not known before it runs: "

// Accepted returns the reasons why the command is undecidable that say no more than what it is: a shell or an
// interpreter that is given a file, or one that keeps a list of directories for programs. Whether such a
// command is understood is for the caller to find out from its words.
func (c Simple) Accepted() []string {
	accepted := []string{sourcesFile, growsPath, c.Name + " " + interprets}
	if c.Name == "tmux" && len(c.Args) > 1 && oneOf(c.Args[1].Text, "display-message display") &&
		!slices.ContainsFunc(c.Args, func(w Word) bool { return !w.Static || strings.Contains(w.Text, "#(") }) {
		accepted = append(accepted, c.Name+" "+startsOthers)
	}
	for _, reason := range c.Undecidable {
		if strings.HasPrefix(reason, c.Name+" "+runsFile) {
			accepted = append(accepted, reason)
		}
	}
	return accepted
}

// Assigned returns the values that the text gives a variable, as far as it says them.
func (a *Analysis) Assigned(name string) []string { return a.values[name] }

// Variables returns the names of the variables that the text gives values.
func (a *Analysis) Variables() (names []string) {
	for name := range a.values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ObeysWorkspace reports whether a program runs or obeys files that it finds by itself from the directory it works in:
// what a build says, a package manifest, plugins and configuration that are programs, or a repository's settings.
// Formatters and linters are among them, because they write what they are given.
func ObeysWorkspace(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	return oneOf(name, "npm npx pnpm pnpx yarn yarnpkg bunx corepack lerna nx turbo rush make gmake cmake ctest ninja meson just task mage rake bundle bundler gem "+
		"pip pipx uv uvx poetry pipenv hatch rye pdm tox nox pytest py.test coverage pre-commit lefthook husky lint-staged cargo rustup go gofmt gofumpt goimports golangci-lint "+
		"staticcheck gopls gradle gradlew mvn mvnw ant sbt mill java javac kotlin kotlinc dotnet msbuild nuget swift xcodebuild composer mix rebar3 cabal stack dune opam "+
		"terraform tofu terragrunt ansible ansible-playbook ansible-lint docker docker-compose podman podman-compose nerdctl buildah kubectl helm skaffold tilt vagrant packer "+
		"git hg svn jj gh glab lab prettier prettierd eslint eslint_d biome oxlint stylelint tsc tslint jest vitest mocha ava playwright cypress webpack vite rollup esbuild swc babel parcel "+
		"rubocop standardrb rspec reek php-cs-fixer phpcs phpcbf phpstan psalm phpunit pint rector black blue isort ruff autopep yapf mypy pyright pylint flake bandit djlint "+
		"rustfmt clang-format clang-tidy shfmt shellcheck swiftformat swiftlint ktlint ktfmt detekt google-java-format scalafmt dprint treefmt taplo buf sqlfluff markdownlint "+
		"markdownlint-cli textlint vale hadolint actionlint yamllint tflint checkov semgrep snyk trivy direnv mise asdf nix nix-build nix-shell bazel buck pants please scons waf conan vcpkg "+
		"gulp grunt trunk moon inv fab doit earthly act dagger run-s run-p npm-run-all devbox devenv overmind hivemind jake tusk mask knip tsup xo standard commitlint semantic-release "+
		"changeset htmlhint remark cspell nyc jasmine karma tap tape bats shellspec nvm fnm volta conda mamba micromamba dotenv dotenvx gcc g++ cc c++ clang clang++ ctags ack cdk pulumi serverless sls sam vercel netlify wrangler firebase expo eas ng vue next nuxt astro gatsby storybook ionic nest prisma "+
		"drizzle-kit knex sequelize typeorm alembic django-admin flask uvicorn gunicorn celery scrapy streamlit jupyter rails rackup puma sidekiq cap artisan symfony drush wp tig lazygit "+
		"code cursor subl idea protoc sphinx-build mkdocs hugo jekyll latexmk pdflatex")
}
