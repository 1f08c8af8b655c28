package command

import "testing"

func TestScript(t *testing.T) {
	const none = ""
	for line, want := range map[string]string{
		"bash deploy.sh": "deploy.sh", "bash -euo pipefail deploy.sh x": "deploy.sh", "bash --norc d/x": "d/x", "sh ~/x.sh": "~/x.sh", "/bin/bash x": "x",
		"python3 x.py -c": "x.py", "python3.12 -W ignore x.py": "x.py", "node x.js": "x.js", "perl -w x.pl": "x.pl", "ruby x.rb": "x.rb", "tsx x.ts": "x.ts",
		"./deploy.sh prod": "./deploy.sh", "/opt/x/run": "/opt/x/run", ". ./env": "./env", "source .venv/bin/activate": ".venv/bin/activate",
		"make": "GNUmakefile", "make -j4 deploy": "GNUmakefile", "make -f build.mk x": "build.mk", "make -C sub deploy": "GNUmakefile in sub",
		"npm run build": "build of package.json", "npm test": "test of package.json", "yarn build": "build of package.json", "pnpm run build": "build of package.json",
		"bun run build": "build of package.json", "npm run build -- --prefix x": "build of package.json",

		// What runs something else, more, or is not known for sure.
		"bash -c 'x'": none, "bash -s x": none, "bash --rcfile evil good": none, "bash --init-file evil -i good": none, "bash +O extglob x": none, "bash -x": none, "bash -": none,
		"bash $f": none, "python3 -m x": none, "python3 -c x y": none, "node -r ./evil.js good.js": none, "node --import ./e good.js": none, "perl -Mevil good.pl": none,
		"ruby -r ./evil good.rb": none, "php -d auto_prepend_file=e good.php": none, "source env": none, "make -f a -f b": none, "make -f - x": none, "make -C $d": none,
		"make --eval=x": none, "npm --prefix other run build": none, "npm run --prefix other build": none, "npm run build --prefix other": none, "npm install": none, "npx x": none, "git push": none, "ls": none, "bun x.ts": none,
	} {
		a := Analyze(line)
		s, ok := a.Commands[0].Script()
		got := s.File.Text
		switch {
		case !ok:
			got = none
		case s.Entry != "":
			got = s.Entry + " of " + s.Names[0]
		case len(s.Names) > 0:
			got = s.Names[0]
			if s.Dir.Text != "" {
				got += " in " + s.Dir.Text
			}
		}
		if got != want {
			t.Errorf("%q runs %q, want %q", line, got, want)
		}
	}
}
