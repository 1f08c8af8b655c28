//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

func TestJudgeBash(t *testing.T) {
	tests := []struct {
		why     string
		rules   string
		command string
		want    Action
		rule    string
	}{
		// The grammar (guard.md, Bash). In default mode without a sandbox only
		// rules and the read-only set allow.
		{"exact", "allow Bash(npm test)", "npm test", Allow, "Bash(npm test)"},
		{"exact, spaces in the command", "allow Bash(npm test)", "npm   test", Allow, "Bash(npm test)"},
		{"exact, more words", "allow Bash(npm test)", "npm test x", Ask, ""},
		{"trailing star", "allow Bash(npm run *)", "npm run a b", Allow, "Bash(npm run *)"},
		{"trailing star, bare", "allow Bash(npm run *)", "npm run", Allow, "Bash(npm run *)"},
		{"trailing star, twin", "allow Bash(npm run *)", "npm runx", Ask, ""},
		{"star without a space", "allow Bash(npm run*)", "npm runx", Allow, "Bash(npm run*)"},
		{"colon star", "allow Bash(npm run:*)", "npm run a", Allow, "Bash(npm run:*)"},
		{"colon star, bare", "allow Bash(npm run:*)", "npm run", Allow, "Bash(npm run:*)"},
		{"colon star, twin", "allow Bash(npm run:*)", "npm runx", Ask, ""},
		{"star in the middle", "allow Bash(npm * --silent)", "npm run a --silent", Allow, "Bash(npm * --silent)"},
		{"star in front", "allow Bash(* --version)", "foo --version", Allow, "Bash(* --version)"},
		{"two stars do not match the bare command", "allow Bash(npm * x *)", "npm a x", Ask, ""},
		{"quoted star", `allow Bash(make \*)`, "make '*'", Allow, `Bash(make \*)`},
		{"quoted star is no wildcard", `allow Bash(make \*)`, "make all", Ask, ""},
		{"(*) is every command", "allow Bash(*)", "anything at all", Allow, "Bash(*)"},
		{"bare", "allow Bash", "anything && more", Allow, "Bash"},
		{"bare passes what cannot be decided", "allow Bash", "eval \"$X\"", Allow, "Bash"},
		{"a program's path is not its name for allow", "allow Bash(make *)", "./make x", Ask, ""},
		{"exactly this line", "allow Bash(make a && make b)", "make a && make b", Allow, "Bash(make a && make b)"},

		// Allow needs every command.
		{"chain, one allowed", "allow Bash(npm *)", "npm test && make", Ask, ""},
		{"chain, all allowed", "allow Bash(npm *)\nallow Bash(make *)", "npm test && make; npm run x | make", Allow, ""},
		{"chain with read-only", "allow Bash(npm *)", "npm test | tail -5", Allow, ""},
		{"newline", "allow Bash(npm *)", "npm test\nmake", Ask, ""},
		{"background", "allow Bash(npm *)", "npm test & make", Ask, ""},
		{"subshell", "allow Bash(npm *)", "(npm test; make)", Ask, ""},
		{"substitution", "allow Bash(npm *)", "npm $(make)", Ask, ""},
		{"backticks", "allow Bash(npm *)", "npm `make`", Ask, ""},
		{"process substitution", "allow Bash(npm *)", "npm <(make)", Ask, ""},
		{"bash -c", "allow Bash(npm *)", "npm x; bash -c 'make'", Ask, ""},
		{"wrapper", "allow Bash(npm *)", "timeout 5 npm test", Allow, ""},
		{"wrapper around another", "allow Bash(npm *)", "timeout 5 make", Ask, ""},
		{"xargs", "allow Bash(lint *)", "echo x | xargs lint -q", Allow, ""},
		{"xargs may give npm an option", "allow Bash(npm *)", "echo x | xargs npm run", Ask, ""},
		{"safe assignment", "allow Bash(npm *)", "NODE_ENV=test npm test", Allow, ""},
		{"unsafe assignment", "allow Bash(npm *)", "LD_PRELOAD=./x.so npm test", Ask, ""},
		{"PATH", "allow Bash(npm *)", "PATH=. npm test", Ask, ""},
		{"undecidable voids a prefix", "allow Bash(git *)", "git -c core.pager='rm x' log", Ask, ""},
		{"a rule that names an interpreter", "allow Bash(python3 *)", "python3 x.py", Allow, "Bash(python3 *)"},
		{"a rule that names an interpreter, text", "allow Bash(python3 -c *)", "python3 -c 'x'", Allow, "Bash(python3 -c *)"},
		{"a rule that names an interpreter, in a pipe", "allow Bash(python3 *)", "cat README.md | python3 - | head", Allow, ""},
		{"a rule that names a shell and a file", "allow Bash(bash src/build.sh *)", "bash src/build.sh all", Allow, ""},
		{"a rule that names a runner", "allow Bash(strace -f *)", "strace -f make", Allow, "Bash(strace -f *)"},
		{"a rule that names watch", "allow Bash(watch *)", "watch -n 1 make", Ask, ""},
		{"a rule that names what watch runs", "allow Bash(make *)", "watch -n 1 'make -j; make x'", Allow, ""},
		{"a rule that is what watch is", "allow Bash(watch -n 1 make)", "watch -n 1 make", Allow, "Bash(watch -n 1 make)"},
		{"deny, braces for the program", "allow Bash\ndeny Bash(rm *)", "{rm,x}", Deny, "Bash(rm *)"},
		{"deny, variables for the program", "allow Bash\ndeny Bash(rm *)", "A=r; B=m; $A$B x", Ask, ruleUndecidable},
		{"denied file, braces in dd", "allow Bash\ndeny Edit(*.lock)", "dd if=x of={a.lock,b}", Deny, "Edit(*.lock)"},
		{"denied operand, braces in dd", "allow Bash\ndeny Bash(dd of=*)", "dd {if=y,of=x}", Deny, "Bash(dd of=*)"},
		{"deny behind watch", "allow Bash\ndeny Bash(rm *)", "watch -n 1 'rm x'", Deny, "Bash(rm *)"},
		{"a rule that names find", "allow Bash(find *)", "find . -name x -delete", Ask, ""},
		{"a rule that names find and what it does", "allow Bash(find * -delete)", "find . -name x -delete", Allow, ""},
		{"ssh that runs a program here", "allow Bash(ssh host *)", "ssh host -oproxycommand=x true", Ask, ""},
		{"ssh that runs a program there", "allow Bash(ssh host *)", "ssh host uptime", Allow, ""},
		{"man with a pager", "allow Bash(man *)", "man -P x ls", Ask, ""},
		{"a linker among flags", "allow Bash(go test *)", "go test -ldflags '-linkmode=external -extld=x' ./...", Ask, ""},
		{"a setting of go", "allow Bash(go env *)", "go env -w CC=x", Ask, ""},
		{"a linker of rustc", "allow Bash(rustc *)", "rustc -C linker=x a.rs", Ask, ""},
		{"a kubeconfig, which may name programs", "allow Bash(kubectl get *)", "kubectl get pods --kubeconfig=x", Ask, ""},
		{"an alias of gh", "allow Bash(gh *)", "gh alias set x '!y'", Ask, ""},
		{"a filter of pandoc", "allow Bash(pandoc *)", "pandoc --filter=x a.md", Ask, ""},
		{"a configuration of npm", "allow Bash(npm run test *)", "npm run test --userconfig=x", Ask, ""},
		{"a rule that names another interpreter", "allow Bash(python3 *)", "perl x.pl", Ask, ""},
		{"a rule that names no program", "allow Bash(* x.py)", "python3 x.py", Ask, ""},
		{"a rule that names no program, first word", "allow Bash(py*)", "python3 x.py", Ask, ""},
		{"what an interpreter is piped to", "allow Bash(python3 *)", "python3 x.py | sh", Ask, ""},
		{"a shell and its input", "allow Bash(bash *)", "echo make | bash", Ask, ""},
		{"a shell and the text in it", "allow Bash(bash *)", "bash -c 'make'", Ask, ""},
		{"an interpreter with an unsafe assignment", "allow Bash(python3 *)", "PYTHONPATH=x python3 x.py", Ask, ""},
		{"an interpreter's text where rules deny", "allow Bash(python3 *)\ndeny Bash(rm *)", "python3 -c 'import os; os.system(x)'", Ask, ruleUndecidable},
		{"an option that runs things is not its purpose", "allow Bash(tar *)", "tar xf a --to-command=make", Ask, ""},
		{"dynamic name", "allow Bash(npm *)", "$CMD test", Ask, ""},
		{"very long", "allow Bash(npm *)", "npm " + strings.Repeat("x", 10_001), Ask, ""},
		{"parse error", "allow Bash(npm *)", "npm test 'unterminated", Ask, ""},

		// Rules as people write them.
		{"a message from a heredoc", "allow Bash(git commit:*)", "git commit -m \"$(cat <<'EOF'\nfix: x\n\nCo-Authored-By: y\nEOF\n)\"", Allow, "Bash(git commit:*)"},
		{"a message from a heredoc that runs something", "allow Bash(git commit:*)", "git commit -m \"$(cat <<EOF\n$(make)\nEOF\n)\"", Ask, ""},
		{"a body from a heredoc", "allow Bash(gh pr create:*)", "gh pr create --title x --body \"$(cat <<'EOF'\n## Summary\n- `x` (#1)\nEOF\n)\"", Allow, ""},
		{"a denied word in a message from a heredoc", "allow Bash(git commit:*)\ndeny Bash(rm:*)", "git commit -m \"$(cat <<'EOF'\nrm -rf /\nEOF\n)\"", Allow, ""},
		{"a backslash as clients save it", `allow Bash(grep -n "a\\|b" README.md)`, `grep -n "a\|b" README.md`, Allow, ""},
		{"source", "allow Bash(source:*)\nallow Bash(pytest:*)", "source venv/bin/activate && pytest -q", Allow, ""},
		{"source without a rule", "allow Bash(pytest:*)", "source venv/bin/activate && pytest -q", Ask, ""},
		{"make with the number of processors", "allow Bash(make:*)", "make -j$(nproc) all", Allow, ""},
		{"make with a function in a variable", "allow Bash(make:*)", "make 'X=$(shell id)'", Ask, ""},
		{"make with an unknown word", "allow Bash(make:*)", "make $X", Ask, ""},
		{"set -a", "allow Bash(source:*)\nallow Bash(npm test:*)", "set -a; source x.env; set +a; npm test", Allow, ""},
		{"a variable that steers nothing", "allow Bash(npm test:*)", "API_KEY=x npm test", Allow, ""},
		{"a wrapper and its program", "allow Bash(timeout 30 pytest:*)", "timeout 30 pytest -q x", Allow, ""},
		{"a wrapper and another program", "allow Bash(timeout 30 pytest:*)", "timeout 30 make", Ask, ""},
		{"a wrapper alone", "allow Bash(timeout:*)", "timeout 30 make", Ask, ""},
		{"xargs and its program", "allow Bash(xargs wc:*)\nallow Bash(git ls-files:*)", "git ls-files | xargs wc -l", Allow, ""},
		{"find and its program", "allow Bash(find . -name x -exec wc:*)", "find . -name x -exec wc -l {} +", Allow, ""},
		{"find alone", "allow Bash(find:*)", "find . -name x -exec make {} +", Ask, ""},
		{"words after those of the rule", "allow Bash(ls:*)\nallow Bash(rm:*)", "ls *.go \"$x\" && rm -f build/*.o", Allow, ""},
		{"a word of the rule is not known", "allow Bash(git log:*)", "git $x log", Ask, ""},
		{"a wildcard may be an option of find", "allow Bash(find:*)", "find $x", Ask, ""},
		{"a redirection where every edit is allowed", "allow Bash(make:*)\nallow Edit", "make > new", Allow, ""},
		{"a builtin in a text that cannot be read", "allow Bash\nask Bash(echo:*)", "echo x #\r", Ask, ruleUndecidable},
		{"a builtin in a text that can be read", "allow Bash\nask Bash(echo:*)", "ls #x", Allow, ""},

		// Deny and ask take any.
		{"deny", "deny Bash(rm *)", "rm x", Deny, "Bash(rm *)"},
		{"deny, a space before the colon", "deny Bash(rm :*)", "rm x", Deny, "Bash(rm :*)"},
		{"deny of a program by its place", "allow Bash\ndeny Bash(/bin/rm:*)", "rm x", Deny, "Bash(/bin/rm:*)"},
		{"deny of a program of the project is none of its name", "allow Bash\ndeny Bash(./bin/rm:*)", "rm x", Allow, "Bash"},
		{"deny that is not closed", "deny Bash(rm:*", "rm x", Deny, "Bash(rm:*"},
		{"deny with nothing in its parentheses", "deny Bash()", "ls", Deny, "Bash()"},
		{"deny of any words", "deny Bash(:*)", "ls", Deny, "Bash(:*)"},
		{"allow with nothing in its parentheses", "allow Bash()", "make", Ask, ""},
		{"deny, options before the subcommand", "allow Bash\ndeny Bash(docker rm:*)", "docker --context x rm -f y", Deny, "Bash(docker rm:*)"},
		{"deny, an option with = before the subcommand", "allow Bash\ndeny Bash(terraform destroy:*)", "terraform -chdir=x destroy", Deny, "Bash(terraform destroy:*)"},
		{"deny, a toolchain before the subcommand", "allow Bash\ndeny Bash(cargo publish:*)", "cargo +nightly publish", Deny, "Bash(cargo publish:*)"},
		{"deny, another name of the subcommand", "allow Bash\ndeny Bash(npm install:*)", "npm --silent i x", Deny, "Bash(npm install:*)"},
		{"deny, a subcommand's operand", "allow Bash\ndeny Bash(docker rm:*)", "docker images rm", Allow, "Bash"},
		{"deny is no prefix of a name", "allow Bash(rmx *)\ndeny Bash(rm *)", "rmx y", Allow, ""},
		{"deny in a chain", "allow Bash\ndeny Bash(rm *)", "ls && rm x", Deny, "Bash(rm *)"},
		{"deny after a newline", "allow Bash\ndeny Bash(rm *)", "ls\nrm x", Deny, "Bash(rm *)"},
		{"deny over a line continuation", "allow Bash\ndeny Bash(rm *)", "r\\\nm x", Deny, "Bash(rm *)"},
		{"deny in a substitution", "allow Bash\ndeny Bash(rm *)", "echo $(rm x)", Deny, "Bash(rm *)"},
		{"deny in a heredoc", "allow Bash\ndeny Bash(rm *)", "cat <<E\n$(rm x)\nE", Deny, "Bash(rm *)"},
		{"deny in a function", "allow Bash\ndeny Bash(rm *)", "f() { rm x; }; f", Deny, "Bash(rm *)"},
		{"deny in control flow", "allow Bash\ndeny Bash(rm *)", "for i in 1 2; do if true; then rm $i; fi; done", Deny, "Bash(rm *)"},
		{"deny in bash -c", "allow Bash\ndeny Bash(rm *)", "bash -lc 'bash -c \"rm x\"'", Deny, "Bash(rm *)"},
		{"deny in eval", "allow Bash\ndeny Bash(rm *)", "eval 'r''m x'", Deny, "Bash(rm *)"},
		{"deny in a trap", "allow Bash\ndeny Bash(rm *)", "trap 'rm x' EXIT", Deny, "Bash(rm *)"},
		{"deny behind wrappers", "allow Bash\ndeny Bash(rm *)", "sudo -u root env A=1 timeout -k 2 5 nice -n 3 nohup rm x", Deny, "Bash(rm *)"},
		{"deny behind xargs", "allow Bash\ndeny Bash(rm *)", "find . | xargs -n 1 rm", Deny, "Bash(rm *)"},
		{"deny behind find -exec", "allow Bash\ndeny Bash(rm *)", "find . -exec rm {} +", Deny, "Bash(rm *)"},
		{"deny behind an assignment", "allow Bash\ndeny Bash(rm *)", "A=1 rm x", Deny, "Bash(rm *)"},
		{"deny by path", "allow Bash\ndeny Bash(rm *)", "/bin/rm x", Deny, "Bash(rm *)"},
		{"deny by ..", "allow Bash\ndeny Bash(rm *)", "/usr/../bin/rm x", Deny, "Bash(rm *)"},
		{"deny through quotes", "allow Bash\ndeny Bash(rm *)", "'r'\"m\" x", Deny, "Bash(rm *)"},
		{"deny through escapes", "allow Bash\ndeny Bash(rm *)", "r\\m x", Deny, "Bash(rm *)"},
		{"deny through $''", "allow Bash\ndeny Bash(rm *)", "$'\\x72m' x", Ask, ruleUndecidable},
		{"deny through $'' without escapes", "allow Bash\ndeny Bash(rm *)", "$'rm' x", Deny, "Bash(rm *)"},
		{"deny after several options of a runner", "allow Bash\ndeny Bash(git push:*)", "uv run --with a --with b --python 3.12 git push", Deny, "Bash(git push:*)"},
		{"deny after the words of a runner", "allow Bash\ndeny Bash(git push:*)", "mise x a@1 b@2 c@3 -- git push", Deny, "Bash(git push:*)"},
		{"deny after a verb of a runner", "allow Bash\ndeny Bash(git push:*)", "dotenvx run -f .env -- git push", Deny, "Bash(git push:*)"},
		{"words of a tool that a runner starts", "allow Bash\ndeny Bash(git push:*)", "npx playwright test -g 'git push' $X", Allow, "Bash"},
		{"a task of a project", "allow Bash\ndeny Bash(git push:*)", "mise run test", Allow, "Bash"},
		{"a known tool that a runner starts", "allow Bash\ndeny Bash(git push:*)", "uv run python -m pytest && uv run mypy src", Allow, "Bash"},
		{"a shell that a runner starts", "allow Bash\ndeny Bash(git push:*)", "uv run bash -c 'git push'", Ask, ruleUndecidable},
		{"text that a runner starts", "allow Bash\ndeny Bash(git push:*)", "npx --call='git push'", Ask, ruleUndecidable},
		{"a runner that a runner starts", "allow Bash\ndeny Bash(git push:*)", "npx npx npx git push", Ask, ruleUndecidable},
		{"braces for a program, without a gate", "allow Bash\ndeny Bash(rm *)", "{rm,-rf,x}", Deny, "Bash(rm *)"},
		{"deny of flags, other order", "allow Bash\ndeny Bash(rm -rf *)", "rm -fr x", Deny, "Bash(rm -rf *)"},
		{"deny of flags, apart", "allow Bash\ndeny Bash(rm -rf *)", "rm -r -v -f x", Deny, "Bash(rm -rf *)"},
		{"deny of flags, long", "allow Bash\ndeny Bash(rm -rf *)", "rm --recursive --force x", Deny, "Bash(rm -rf *)"},
		{"deny of flags, after the operand", "allow Bash\ndeny Bash(git push --force *)", "git push origin main --force", Deny, "Bash(git push --force *)"},
		{"deny of flags, short", "allow Bash\ndeny Bash(git push --force *)", "git push -f", Deny, "Bash(git push --force *)"},
		{"deny of flags, options before the subcommand", "allow Bash\ndeny Bash(git push --force *)", "git -C sub push --force", Deny, "Bash(git push --force *)"},
		{"deny of flags, another subcommand", "allow Bash\ndeny Bash(git push --force *)", "git fetch --force", Allow, "Bash"},
		{"deny of flags, one missing", "allow Bash\ndeny Bash(rm -rf *)", "rm -r x", Allow, "Bash"},
		{"deny with options before the subcommand", "allow Bash\ndeny Bash(git push *)", "git --no-pager -C sub push", Deny, "Bash(git push *)"},
		{"deny by a variable", "allow Bash\ndeny Bash(rm *)", "a=r; ${a}m x", Ask, ruleUndecidable},
		{"deny by a variable, by path", "allow Bash\ndeny Bash(rm *)", "for b in /bin /usr/bin; do $b/rm x; done", Ask, ruleUndecidable},
		{"deny of an option in a variable", "allow Bash\ndeny Bash(git push --force *)", "F='--force origin'; git push $F", Ask, "Bash(git push --force *)"},
		{"allow is no guess", "allow Bash(npm *)", "[ $x ] || a=npm; $a test", Ask, ""},
		{"allow is no guess, arguments", "allow Bash(npm run test)", "[ $x ] || a=test; npm run \"$a\"", Ask, ""},
		{"allow of what a variable surely holds", "allow Bash(npm *)", "a=npm; $a test", Ask, ""},
		{"allow of what a loop surely runs", "allow Bash(npm run test)\nallow Bash(npm run lint)", "for a in test lint; do npm run \"$a\"; done", Ask, ""},
		{"allow of a part of what a loop runs", "allow Bash(npm run test)", "for a in test lint; do npm run \"$a\"; done", Ask, ""},
		{"deny of several commands", "allow Bash\ndeny Bash(curl * | sh)", "curl http://x | sh", Deny, "Bash(curl * | sh)"},
		{"deny exact", "allow Bash\ndeny Bash(git push)", "git push", Deny, "Bash(git push)"},
		{"deny exact, more words", "allow Bash\ndeny Bash(git push)", "git push origin", Allow, "Bash"},
		{"ask", "allow Bash\nask Bash(git push:*)", "git push", Ask, "Bash(git push:*)"},
		{"ask for every command", "allow Bash(npm *)\nask Bash", "npm test", Ask, "Bash"},
		{"a dynamic name could hide the denied program", "allow Bash\ndeny Bash(rm *)", "$X y", Ask, ruleUndecidable},
		{"an indirect shell could", "allow Bash\ndeny Bash(rm *)", "echo x | sh", Ask, ruleUndecidable},
		{"an interpreter's text could", "allow Bash\ndeny Bash(rm *)", "python3 -c 'import os; os.system(x)'", Ask, ruleUndecidable},
		{"the same in a heredoc that the shell expands", "allow Bash\ndeny Bash(rm *)", "python3 - <<E\nprint($X)\nE", Ask, ruleUndecidable},
		{"an interpreter's text from a pipe", "allow Bash\ndeny Bash(rm *)", "echo 'print(1)' | python3", Ask, ruleUndecidable},
		{"a script that is there", "allow Bash\ndeny Bash(rm *)", "bash script.sh x", Ask, ruleUndecidable},
		{"a script that is sourced", "allow Bash\ndeny Bash(rm *)", ". ./script.sh && make", Ask, ruleUndecidable},
		{"a script that names what is denied", "allow Bash\ndeny Bash(chmod *)", "bash script.sh", Ask, ruleUndecidable},
		{"a script that the line writes", "allow Bash\ndeny Bash(rm *)", "echo rm x > s.sh; bash s.sh", Ask, ruleUndecidable},
		{"a script that the line copies", "allow Bash\ndeny Bash(rm *)", "cp README.md script.sh; bash script.sh", Ask, ruleUndecidable},
		{"a script that the line moves", "allow Bash\ndeny Bash(rm *)", "mv src/x .; sh ./x", Ask, ruleUndecidable},
		{"a script that a program given as text may make", "allow Bash\ndeny Bash(rm *)", "python3 -c \"open('s.sh','w').write('x')\"; bash s.sh", Ask, ruleUndecidable},
		{"a script that a program given as text may change", "allow Bash\ndeny Bash(rm *)", "perl -pi -e 's/make/x/' script.sh; bash script.sh", Ask, ruleUndecidable},
		{"a script that something may make", "allow Bash\ndeny Bash(rm *)", "make s.sh && bash s.sh", Ask, ruleUndecidable},
		{"a script that is not there", "allow Bash\ndeny Bash(rm *)", "bash s.sh", Ask, ruleUndecidable},
		{"a script of an unknown name", "allow Bash\ndeny Bash(rm *)", "bash $X", Ask, ruleUndecidable},
		{"a script at a descriptor", "allow Bash\ndeny Bash(rm *)", "source /dev/stdin", Ask, ruleUndecidable},
		{"a shell that reads start-up files", "allow Bash\ndeny Bash(rm *)", "bash --rcfile x -i script.sh", Ask, ruleUndecidable},
		{"a directory added to PATH", "allow Bash\ndeny Bash(rm *)", "export PATH=\"$HOME/go/bin:$PATH\" && make", Allow, ""},
		{"a directory of the workspace in front of PATH", "allow Bash\ndeny Bash(rm *)", "PATH=x:$PATH make", Ask, ruleUndecidable},
		{"options of node", "allow Bash\ndeny Bash(rm *)", "NODE_OPTIONS=--max-old-space-size=4096 npm test", Allow, ""},
		{"a module for node", "allow Bash\ndeny Bash(rm *)", "NODE_OPTIONS='--require ./x' npm test", Ask, ruleUndecidable},
		{"where Python finds modules", "allow Bash\ndeny Bash(rm *)", "PYTHONPATH=src python3 -m pytest", Ask, ruleUndecidable},
		{"an interpreter's input could", "allow Bash\ndeny Bash(rm *)", "echo x | python3 -", Ask, ruleUndecidable},
		{"an interpreter's input by name could", "allow Bash\ndeny Bash(rm *)", "echo x | python3 /dev/stdin", Ask, ruleUndecidable},
		{"a file for an interpreter is as open as make", "allow Bash\ndeny Bash(rm *)", "python3 x.py && node lib/x && python3 -m pytest", Allow, "Bash"},
		{"a program of sqlite", "allow Bash\ndeny Bash(rm *)", "sqlite3 x.db '.system rm x'", Ask, ruleUndecidable},
		{"a program of sqlite by an option", "allow Bash\ndeny Bash(rm *)", "sqlite3 -cmd '.shell rm x' x.db 'select 1'", Ask, ruleUndecidable},
		{"a program of sqlite on a line of its own", "allow Bash\ndeny Bash(rm *)", "sqlite3 x.db $'select 1;\\n.system rm x'", Ask, ruleUndecidable},
		{"a program of sqlite in its input", "allow Bash\ndeny Bash(rm *)", "sqlite3 x.db < q.sql", Ask, ruleUndecidable},
		{"a program of gdb", "allow Bash\ndeny Bash(rm *)", "gdb ./x -ex 'shell rm x'", Ask, ruleUndecidable},
		{"a program of mysql", "allow Bash\ndeny Bash(rm *)", "mysql ./x -e 'system rm x'", Ask, ruleUndecidable},
		{"a program of psql", "allow Bash\ndeny Bash(rm *)", `psql ./x -c '\! rm x'`, Ask, ruleUndecidable},
		{"tests of bun and deno are as open as make", "allow Bash\ndeny Bash(rm *)", "bun test && deno test -A", Allow, "Bash"},
		{"text for such a program, attached", "allow Bash\ndeny Bash(rm *)", `php artisan tinker --execute='system("rm x")'`, Ask, ruleUndecidable},
		{"a file for such a program", "allow Bash\ndeny Bash(rm *)", "python3 manage.py test -c conf.ini && python3 x.py -e dev", Allow, "Bash"},
		{"another client of databases", "allow Bash\ndeny Bash(rm *)", "duckdb x.db '.shell rm x'", Ask, ruleUndecidable},
		{"deny behind a cache of compilers", "allow Bash\ndeny Bash(rm *)", "ccache rm x", Deny, "Bash(rm *)"},
		{"text for deno", "allow Bash\ndeny Bash(rm *)", "deno eval x", Ask, ruleUndecidable},
		{"what find finds may be an option", "allow Bash\ndeny Bash(rm *)", "find -- -x -exec sed -i s/a/b/ {} ';'", Ask, ruleUndecidable},
		{"what find finds may be a program", "allow Bash\ndeny Bash(rm *)", "find . -exec {} ';'", Ask, ruleUndecidable},
		{"a file beside something hidden", "allow Bash\ndeny Bash(rm *)", "python3 x.py; $X", Ask, ruleUndecidable},
		{"an interpreter, exactly", "allow Bash(python3 x.py)", "python3 x.py", Allow, "Bash(python3 x.py)"},
		{"a decided line could not", "allow Bash\ndeny Bash(rm *)", "make x", Allow, "Bash"},
		{"parameter, with a space", "allow Bash\ndeny Bash(run_in_background : true)", "make", Deny, ""},
		{"parameter", "allow Bash\ndeny Bash(run_in_background:true)", "make", Deny, "Bash(run_in_background:true)"},

		// Benign commands must pass.
		{"benign: commit message", "allow Bash(git commit *)\ndeny Bash(rm *)", `git commit -m "do not rm -rf /"`, Allow, "Bash(git commit *)"},
		{"benign: echo of a command", "deny Bash(rm *)", `echo "rm -rf /"`, Allow, ruleReadOnly},
		{"benign: grep for a name", "", `grep -rn ".env" src`, Allow, ruleReadOnly},
		{"benign: echo of a denied file", "deny Read(.env)", `echo "cat .env"`, Allow, ruleReadOnly},
		{"benign: another file", "deny Read(.env)", "cat environment.md", Allow, ruleReadOnly},

		// The read-only set and its paths.
		{"read-only", "", "ls -la && cat README.md | head -3", Allow, ruleReadOnly},
		{"names outside by a wildcard", "mode plan", "echo $TOP/out/*", Deny, "mode plan"},
		{"hashes of what a file lists", "mode plan", "md5sum -c sums", Deny, "mode plan"},
		{"read-only in dontAsk mode", "mode dontAsk", "find . -name '*.go' | wc -l", Allow, ruleReadOnly},
		{"not read-only in plan mode", "mode plan\nallow Bash", "touch x", Deny, "mode plan"},
		{"not read-only in dontAsk mode", "mode dontAsk", "touch x", Deny, "mode dontAsk"},
		{"find -delete", "", "find . -delete", Ask, ""},
		{"find -exec", "", "find . -exec touch {} +", Ask, ""},
		{"sort -o", "", "sort -o x README.md", Ask, ""},
		{"rg --pre", "", "rg --pre ./x a", Ask, ""},
		{"cat outside", "", "cat $TOP/out/f", Ask, ""},
		{"cat outside by a link", "", "cat outlink", Ask, ""},
		{"cat outside by a wildcard", "", "cat out*", Ask, ""},
		{"cat of something unknown", "", "cat $F", Ask, ""},
		{"cd outside", "", "cd $TOP/out && cat f", Ask, ""},
		{"cd home", "", "cd; ls", Ask, ""},
		{"cd to where it is", "", "cd $TOP/ws && ls && cd . && cat README.md", Allow, ruleReadOnly},
		{"cd back", "", "cd - && ls", Ask, ""},
		{"env -C", "", "env -C $TOP/out cat f", Ask, ""},
		{"cd inside, env -C outside", "", "cd src && env -C $TOP/out cat f", Ask, ""},
		{"cd inside", "", "cd src && cat main.go", Allow, ruleReadOnly},
		{"home secret", "", "cat ~/.ssh/id_rsa", Deny, ruleSecret},
		{"home secret by $HOME", "", "cat $HOME/.ssh/id_rsa", Deny, ruleSecret},
		{"home secret by any program", "allow Bash", "base64 ~/.ssh/id_rsa", Deny, ruleSecret},
		{"home secret, copied", "allow Bash", "cp ~/.ssh/id_rsa x", Deny, ruleSecret},
		{"our state", "allow Bash", "cat $TOP/state/token", Deny, ruleState},

		// Denied files in commands.
		{"denied file", "allow Bash\ndeny Read(.env)", "cat .env", Deny, "Read(.env)"},
		{"denied file, absolute", "allow Bash\ndeny Read(.env)", "cat $TOP/ws/.env", Deny, "Read(.env)"},
		{"denied file by a link", "allow Bash\ndeny Read(.env)", "cat envlink", Deny, "Read(.env)"},
		{"denied file, as a script", "allow Bash\ndeny Read(.env)", "awk -f .env README.md", Deny, "Read(.env)"},
		{"benign: the file's name elsewhere", "allow Bash\ndeny Read(.env)", "curl -o x https://example.com/.env", Allow, "Bash"},
		{"benign: the file's name in a message", "allow Bash\ndeny Read(.env)", "git commit -m 'docs: .env'", Allow, "Bash"},
		{"denied file, dd", "allow Bash\ndeny Read(.env)", "dd if=.env of=x", Deny, "Read(.env)"},
		{"denied file after cd", "allow Bash\ndeny Read(sub/.env)", "cd sub && cat .env", Deny, "Read(sub/.env)"},
		{"denied file, quoted", "allow Bash\ndeny Read(.env)", "cat .e'n'v", Deny, "Read(.env)"},
		{"denied file, redirected", "allow Bash\ndeny Read(.env)", "cat < .env", Deny, "Read(.env)"},
		{"denied file, in a substitution", "allow Bash\ndeny Read(.env)", "x=$(<.env)", Deny, "Read(.env)"},
		{"denied file, linked", "allow Bash\ndeny Read(.env)", "ln .env x", Deny, "Read(.env)"},
		{"asked file", "allow Bash\nask Read(.env)", "cat .env", Ask, "Read(.env)"},
		{"denied file by a variable, redirected", "allow Bash\ndeny Edit(*.lock)", "X=new; echo x > $X.lock", Deny, "Edit(*.lock)"},
		{"denied directory, removed", "allow Bash\ndeny Edit(src/**)", "rm -rf src", Deny, "Edit(src/**)"},
		{"denied directory, copied into", "allow Bash\ndeny Edit(src/**)", "cp README.md src/", Deny, "Edit(src/**)"},
		{"denied directory, read", "allow Bash\ndeny Edit(src/**)", "ls src", Allow, ""},

		// Redirections are writes.
		{"redirect", "mode acceptEdits", "echo x > new", Allow, ""},
		{"redirect in default mode", "", "echo x > new", Ask, "mode default"},
		{"redirect in default mode, allowed", "allow Edit(new)", "echo x > new", Allow, ""},
		{"redirect in default mode, Bash allowed", "allow Bash", "make > new", Allow, "Bash"},
		{"redirect in dontAsk mode, command allowed", "mode dontAsk\nallow Bash(make *)", "make > new", Deny, "mode dontAsk"},
		{"redirect after cd to somewhere", "allow Bash(echo *)\nallow Edit(new)", "cd $X; echo x > new", Ask, ""},
		{"redirect in plan mode", "mode plan", "echo x > new", Deny, "mode plan"},
		{"redirect to /dev/null", "", "ls > /dev/null 2>&1", Allow, ruleReadOnly},
		{"redirect outside", "mode acceptEdits", "echo x > $TOP/out/new", Ask, RuleBoundary},
		{"redirect to a denied file", "mode acceptEdits\ndeny Edit(new)", "echo x > new", Deny, "Edit(new)"},
		{"append", "mode acceptEdits\ndeny Edit(new)", "echo x >> new", Deny, "Edit(new)"},
		{"stderr", "mode acceptEdits\ndeny Edit(new)", "ls 2> new", Deny, "Edit(new)"},
		{"tee", "mode acceptEdits\ndeny Edit(new)", "echo x | tee -a new", Deny, "Edit(new)"},
		{"sed -i", "mode acceptEdits\ndeny Edit(src/**)", "sed -i s/a/b/ src/main.go", Deny, "Edit(src/**)"},
		{"redirect to a protected file", "mode acceptEdits\nallow Bash", "echo x > .bashrc", Ask, RuleProtected},
		{"redirect after cd to a protected directory", "mode acceptEdits\nallow Bash", "cd .git/hooks && echo x > pre-commit", Ask, RuleProtected},
		{"redirect to settings", "mode bypassPermissions", "echo x > .claude/settings.json", Deny, ruleSettingsFile},
		{"redirect to settings after cd", "mode bypassPermissions", "cd .claude && echo x > settings.local.json", Deny, ruleSettingsFile},
		{"copy to settings", "mode bypassPermissions", "cp x .claude/settings.json", Deny, ruleSettingsFile},
		{"redirect to something unknown", "allow Bash(echo *)", "echo x > $F", Ask, ruleUndecidable},
		{"redirect to our state", "mode bypassPermissions", "echo x > $TOP/state/token", Deny, ruleState},

		// Critical removals.
		{"rm /", "mode bypassPermissions", "rm -rf /", Ask, ruleCritical},
		{"rm child of /", "mode bypassPermissions", "rm -rf /usr", Ask, ruleCritical},
		{"rm /*", "mode bypassPermissions", "rm -rf /*", Ask, ruleCritical},
		{"rm home", "allow Bash", "rm -rf ~", Ask, ruleCritical},
		{"rm home/*", "allow Bash", "rm -rf ~/*", Ask, ruleCritical},
		{"rm $HOME", "allow Bash", "rm -rf \"$HOME\"", Ask, ruleCritical},
		{"rm root", "allow Bash", "rm -rf $TOP/ws", Ask, ruleCritical},
		{"rm, braces", "allow Bash", "rm -rf /{usr,home}", Ask, ruleCritical},
		{"rm home, braces", "allow Bash", "rm -rf {~,x}", Ask, ruleCritical},
		{"rm $HOME, braces", "allow Bash", "rm -rf $HOME/{.,x}", Ask, ruleCritical},
		{"rm of files, braces", "allow Bash", "rm -rf build/{a,b}", Allow, "Bash"},
		{"protected, braces", "allow Bash", "touch {x,.envrc}", Ask, RuleProtected},
		{"denied reading, braces", "allow Bash\ndeny Read(.env)", "cat {README.md,.env}", Deny, "Read(.env)"},
		{"other files, braces", "allow Bash\ndeny Read(.env)", "cat {README.md,x}", Allow, "Bash"},
		{"rm root's parent", "allow Bash", "rm -rf ..", Ask, ruleCritical},
		{"rm .", "allow Bash", "rm -rf .", Ask, ruleCritical},
		{"rm *", "allow Bash", "rm -rf *", Ask, ruleCritical},
		{"rm by a longer way", "allow Bash", "rm -rf src/../../ws", Ask, ruleCritical},
		{"rm after cd", "allow Bash", "cd .. && rm -rf ws", Ask, ruleCritical},
		{"rm \"$V\"/*", "allow Bash", `rm -rf "$V"/*`, Ask, ruleCritical},
		{"rm of a variable's value", "allow Bash", `D=/; rm -rf "$D"`, Ask, ruleCritical},
		{"rm $V/", "allow Bash", `rm -rf $V/`, Ask, ruleCritical},
		{"rm after cd to nowhere known", "allow Bash", `cd "$V" && rm -rf *`, Ask, ruleCritical},
		{"rm behind sudo", "allow Bash", `sudo rm -rf /`, Ask, ruleCritical},
		{"rmdir", "allow Bash", `rmdir ~`, Ask, ruleCritical},
		{"rm in plan mode", "mode plan", "rm -rf /", Deny, "mode plan"},
		{"rm in dontAsk mode", "mode dontAsk\nallow Bash", "rm -rf /", Deny, ruleCritical},
		{"benign: a substituted process", "mode plan", "cat < <(ls)", Allow, ruleReadOnly},
		{"a substituted process that changes something", "mode plan", "diff <(make) README.md", Deny, "mode plan"},
		{"a substituted process that reads elsewhere", "mode plan", "cat <(cat $TOP/out/store)", Deny, "mode plan"},
		{"a process that is written to", "mode plan", "ls > >(make)", Deny, "mode plan"},
		{"benign: rm of a directory", "allow Bash", "rm -rf src build/*", Allow, "Bash"},
		{"benign: rm of a variable's part", "allow Bash", `rm -rf "$V"/build`, Allow, "Bash"},
	}
	top, ws := workspace(t)
	if err := os.WriteFile(filepath.Join(ws, "script.sh"), []byte("make build\nchmod +x \"$1\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			set := testRules(ws, "mode default\n"+strings.ReplaceAll(tt.rules, "$TOP", top))
			set.Sandbox.OnUnavailable = settings.OnFailureAllow // the rules alone
			p := policy(t, ws, set, uncontained)
			v := p.Judge(Intent{Tool: "Bash", Args: map[string]any{"run_in_background": true}, Effects: []Effect{Exec{
				Text: strings.ReplaceAll(tt.command, "$TOP", top), Dir: resolve(t, p, "."),
			}}})
			if want := strings.ReplaceAll(tt.rule, "$TOP", top); v.Action != tt.want || want != "" && v.Rule != want {
				t.Errorf("%q under %q: %v by %q, want %v by %q\n%s", tt.command, tt.rules, v.Action, v.Rule, tt.want,
					want, v.Error())
			}
		})
	}
}

// FuzzJudge checks that no rule and no command panics, and that a denied program
// that stands there plainly is never allowed.
func FuzzJudge(f *testing.F) {
	for _, s := range []string{"ls", "rm x", "a && rm -rf /", "cat <<E\n$(rm x)\nE", "cd a; rm *", "echo > /x"} {
		f.Add("Bash(x *)", s)
	}
	_, ws := workspace(f)
	f.Fuzz(func(t *testing.T, ruleText, command string) {
		set := &settings.Settings{DefaultMode: settings.ModeBypass}
		set.Deny = []settings.Entry{{Text: ruleText, File: "s"}, {Text: "Bash(forbidden *)", File: "s"}}
		set.Allow = []settings.Entry{{Text: ruleText, File: "s"}, {Text: "Bash", File: "s"}}
		p := policy(t, ws, set, contained)
		dir := resolve(t, p, ".")
		p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: command, Dir: dir}}})
		if strings.ContainsAny(command, "\x00") {
			return
		}
		if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: "forbidden x\n" + command, Dir: dir}}}); v.Action == Allow {
			t.Errorf("allowed: forbidden x, then %q", command)
		}
	})
}
