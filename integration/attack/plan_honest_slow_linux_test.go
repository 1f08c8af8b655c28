//go:build slow

package attack

func init() {
	planBuilds = append(planBuilds,
		planBuild{"go", "go", map[string]string{
			"go.mod": "module example.org/x\n\ngo 1.24\n", "x.go": "package main\n\nfunc f() int { return 1 }\n\nfunc main() { println(f()) }\n",
			"lib/lib.go": "package lib\n\nfunc F() int { return 1 }\n", // needs no other, in a cache of its own
			"x_test.go":  "package main\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestF(t *testing.T) {\n\tif os.WriteFile(\"made\", nil, 0o644) != nil || f() != 1 {\n\t\tt.Fatal()\n\t}\n\tt.TempDir()\n}\n",
		}, []string{"export GOFLAGS=-trimpath CGO_ENABLED=0 GOCACHE=$CACHE; go vet ./... && go test ./... | sed 's/[0-9.]*s$//'", "go build ./lib; export GOFLAGS=-trimpath CGO_ENABLED=0 GOCACHE=$CACHE; go build -o bin/x . && ./bin/x",
			"export GOFLAGS=-trimpath GOCACHE=$CACHE; gofmt -l . && go test -race -count=1 ./... | sed 's/[0-9.]*s$//'; ls made"}},
		planBuild{"npm", "npm", map[string]string{
			"package.json": `{"name":"x","version":"1.0.0","type":"module","scripts":{"test":"node --test --test-reporter=tap","build":"mkdir -p dist && cp x.js dist"}}`,
			".npmrc":       "update-notifier=false\n",
			"x.js":         "export const f = () => 1\n",
			"x.test.js":    "import test from 'node:test'\nimport assert from 'node:assert'\nimport fs from 'node:fs'\nimport {f} from './x.js'\ntest('f', () => { assert.equal(f(), 1); fs.writeFileSync('made', 'x') })\n",
		}, []string{"npm test 2>&1 | grep -v -e duration -e '^>' | grep .",
			"npm run -s build && ls dist && cat made; echo", "npm install --offline --no-audit --no-fund -s && ls"}},
		planBuild{"gcc", "gcc", map[string]string{"x.c": "#include <stdio.h>\nint main(void) { puts(\"x\"); }\n"},
			[]string{"gcc -o x x.c && ./x", "ar rc l.a x.c && ar t l.a"}},
	)
}
