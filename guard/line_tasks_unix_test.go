//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTasks holds that what make, npm and the like run is looked into, as far as their
// files say it, and that nothing is asked for a target that runs nothing of which rules
// speak.
func TestTasks(t *testing.T) {
	_, ws := workspace(t)
	for name, text := range map[string]string{
		"Makefile":          "all: build\nbuild:\n\tgo build ./...\nclean:\n\t@rm -rf out\nrelease: build\n\t./push.sh\nsub:\n\t$(MAKE) -C sub clean\nls:\n\tls\n",
		"push.sh":           "#!/bin/sh\ngit push\n",
		"sub/Makefile":      "clean: ; rm x\n",
		"sub/fine.mk":       "all: ; echo fine\n",
		"src/x.txt":         "",
		"package.json":      `{"scripts":{"build":"tsc","clean":"rm -rf out","rebuild":"npm run clean && npm run build","make":"make clean","prepack":"rm x","ci":"run-s build clean"},"workspaces":["pk/*"]}`,
		"pk/a/package.json": `{"scripts":{"only":"rm x"}}`,
		"justfile":          "build: \n  cc\nclean:\n  rm x\n",
		"Taskfile.yml":      "tasks:\n  clean: rm x\n  build: cc\n",
		"composer.json":     `{"scripts":{"tidy":["@php x","rm y"]}}`,
		"deno.json":         `{"tasks":{"tidy2":"rm y"}}`,
	} {
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := policy(t, ws, rules(ws, "deny Bash(rm *)\nask Bash(git push *)"), contained)
	for command, want := range map[string]Action{
		"make": Allow, "make build": Allow, "make ls": Allow, "make clean": Ask, "make -n clean": Allow, "make build clean": Ask, "make release": Ask, "make sub": Ask,
		"make -C sub": Ask, "make -Csub -f fine.mk": Allow, "cd sub && make": Ask, "cd sub && make -f fine.mk": Allow, "make -f sub/Makefile clean": Ask,
		"timeout 5 make clean": Ask, "env X=1 make clean": Ask, "bash -c 'make clean'": Ask, "ls | xargs make clean": Ask, "make nosuch": Allow,
		"make $X": Ask, "npm run $X": Ask, "just $X": Ask, "task $X": Ask, "[ $Y ] || x=build; npm run $x": Ask, "x=build; npm run $x": Allow, "x=clean; npm run $x": Ask, "for x in build clean; do make $x; done": Ask, "for x in build ls; do make $x; done": Allow,
		"npm run build": Allow, "npm run clean": Ask, "npm run rebuild": Ask, "npm run make": Ask, "npm run ci": Ask, "npm pack": Ask, "npm install": Allow, "npm ls": Allow,
		"cd src && npm run clean": Ask, "npm --prefix src run clean": Ask, "yarn clean": Ask, "yarn build": Allow, "pnpm run clean": Ask, "bun run clean": Ask, "node --run clean": Ask,
		"npm run only": Allow, "npm run only -w a": Ask, "npm run only --workspaces": Ask, "run-p build clean": Ask, "node --version": Allow,
		"just": Allow, "just clean": Ask, "just build": Allow, "task clean": Ask, "task build": Allow, "task": Allow,
		"composer tidy": Ask, "composer run tidy": Ask, "deno task tidy2": Ask,
		"printf 'all:\\n\\trm x\\n' > new.mk && make -f new.mk": Ask, "printf 'all:\\n\\tls\\n' > new.mk && make -f new.mk": Allow,
		"cat > new.mk <<'E'\nall:\n\trm x\nE\nmake -f new.mk": Ask, "cat > new.mk <<'E'\nall: ; ls\nE\nmake -f new.mk": Allow,
		`printf '{"scripts":{"z":"rm x"}}' > src/package.json; npm run z --prefix src`: Ask,
		"printf 'make clean' > go.sh && ls":                                            Allow,
	} {
		v := p.Judge(Intent{Tool: "Bash", Command: &Command{Text: command, Dir: resolve(t, p, ".")}})
		if v.Action != want {
			t.Errorf("%s: %v, want %v\n%s", command, v.Action, want, v.Error())
		}
	}
	v := p.Judge(Intent{Tool: "Bash", Command: &Command{Text: "make clean", Dir: resolve(t, p, ".")}})
	if v.Rule != "Bash(rm *)" || !strings.Contains(v.Reason, `"rm -rf out"`) || !strings.Contains(v.Reason, "Makefile") {
		t.Errorf("the verdict does not say what runs: %s", v.Error())
	}
}

// TestTasksBeyondBounds holds that what is too much to look at is asked for.
func TestTasksBeyondBounds(t *testing.T) {
	_, ws := workspace(t)
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	filler := strings.Repeat("# nothing\n", maxScript/10)
	put("long.mk", "all: ; ls\n"+filler+"clean: ; rm x\n")
	put("first.mk", "include long.mk\n")
	put("justfile", "build:\n  cc\n"+filler+"clean:\n  rm x\n")
	put("package.json", `{"scripts":{"build":"tsc"}}`)
	for i := range maxPackages + 1 {
		put(filepath.Join("pk", strings.Repeat("p", i+1), "package.json"), `{"scripts":{"other":"rm x"}}`)
	}
	p := policy(t, ws, rules(ws, "deny Bash(rm *)"), contained)
	for command, want := range map[string]Action{
		"make -f long.mk clean": Ask, "make -f first.mk clean": Ask, "just clean": Ask,
		"npm run build": Allow, "npm run build --workspaces": Ask, "run-s" + strings.Repeat(" build", maxTaskNames+1): Ask, "run-s build build": Allow,
	} {
		if v := p.Judge(Intent{Tool: "Bash", Command: &Command{Text: command, Dir: resolve(t, p, ".")}}); v.Action != want {
			t.Errorf("%.40s: %v, want %v\n%s", command, v.Action, want, v.Error())
		}
	}
}
