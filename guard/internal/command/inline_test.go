package command

import "testing"

func TestHarmlessText(t *testing.T) {
	for text, want := range map[string]bool{
		"perl -pe 's/a/b/g' x": true, "perl -i -pe 's/foo/bar/' a.txt b.txt": true, "perl -pi.bak -e 's|a|$1|;s#x#y#' src/*.go": true, "perl -0777 -pe 's/a\\nb//' x": true,
		"perl -pe 's/a/`id`/' x": false, "perl -pe 's/a/id/e' x": false, "perl -pe 's/a/@{[x]}/' x": false, "perl -pe 's/(?{x})//' x": false, "perl -pe 's/a/b/' 'rm x|'": false,
		"perl -pe 's/a/b/' *": false, "perl -pe 's/a/b/; x()' y": false, `perl -pe 's/a\/b/;s/e/x/' y`: false, "perl -Mx -pe 's/a/b/'": false, "perl -pe \"s/a/$X/\" x": false, "perl -pe 's/a/b/' -e x": false, "perl -ne 1 x": false,
		"node -e 'console.log(process.version)'": true, "node -p \"require('./package.json').version\"": true, "node -p 'require(\"./a.json\")[\"x-y\"].z'": true,
		"node -p \"require('child_process')\"": false, "node -p \"require('./a.js')\"": false, "node -p \"require('./a.json').x('y')\"": false, "node -p \"require('./a.json')[x]('y')\"": false, "node -p 'process.exit()'": false,
		"node -r ./x -p process.version": false, "python3 -c 'print(1)'": true, "python3 -c \"print($X)\"": false, "python3 -W x -c 'print(1)'": false, "python3 -ic 'print(1)'": false,
		"perl -pe 's/(a)/$1b/;s/c/$&$&/' x": true, "perl -pe 's/a/$1{system 1}/' x": false, "perl -pe 's/a/$1 [system 1]/' x": false, "perl -pe 's/$&->{system 1}//' x": false, "perl -pe 's/(*{x})//' x": false,
		"perl -ne 'print if /a+b/i' x": true, "perl -ne print x": true, "perl -ne 'print if /(?{x})/' x": false, "perl -ne 'print if /@{[x]}/' x": false, "perl -ne 'print if /$x[y]/' x": false, "perl -ne 'print if /a/' 'rm x|'": false,
		"psql -h db -U me -c 'select 1'": true, "mysql -e 'show tables' db": true, `psql -c '\\! x'`: false, "psql -c 'copy a to program $$x$$'": false, "psql -f x": false, "mysql -e 'system x'": false,
		"mysql --pager=x -e 'select 1'": false, "psql": false, "psql -c \"$X\"": false, "mysql -e $'select 1\\nsystem x'": false,
		"ruby -e 1": false, "python3 -c 'print(1)' < x": true, "python3 < x": false, "python3 -u - <<< 'print(1)'": true,
	} {
		if got := Analyze(text).Commands[0].harmless; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestComputes(t *testing.T) {
	for _, text := range []string{
		"console.log(1+1)", "1 + 2", "console.log('a', \"b c\", 0x1F, 1.5e3)", "[1,2,3].map(x => x*2).join(',')", "console.log(JSON.stringify({a: [1, 2]}, null, 2))",
		"const a = JSON.parse('[1]'); for (let i of a) console.log(i)", "Math.max(1, Number('2'))", "new Date().toISOString()", "console.log('require(x)')",
	} {
		if !computes(text) {
			t.Errorf("%q is taken to start something", text)
		}
	}
	for _, text := range []string{
		"", "require('child_process')", "process.exit()", "import('x')", "[]['constructor']", "''['a']", "x\n['a']", "(1)['a']", "a.constructor('x')()", "`${x}`", "a`x`", "this", "eval('1')", "Function('x')()",
		"globalThis.x", "\\u0065val('x')", "\uff45val(1)", "a //", "/x/.y", "'a\\'; require(\"x\")", "'unterminated", "#!x", "a?.['b']", "({}).x.bind(y)", "$", "_", "const {a, ['constructor']: c} = Math.max; c('x')()", "const {a, ['con' + 'structor'] : c} = Math.max; c('x')()", "const {constructor} = Math.max; constructor('x')()", "const {constructor: c} = Math.max; c('x')()", "(({constructor: c}) => c('x')())(Math.max)",
		"Math.max. constructor('x')()", "Math.max\n.constructor('x')()", "require('fs').x.__proto__", "require('child_process').execSync('x')", "const r = require; r('child_process')", "const {require} = 1; require('child_process')", "require('fs'+x)", "require('module')._load('child_process')", "process.mainModule.require('child_process')",
		"process.binding('spawn_sync')", "process.getBuiltinModule('child_process')", "const p = process; p.x", "import('child_process')", "module.require('child_process')", "require('./a.js')", "require('../x/../a.json.js')", "Object.values(Object.getOwnPropertyDescriptors(Math))[0].value",
		"const f = x => x[y]; f(Math.max)", "function g() { return this }", "require('vm').runInThisContext('x')", "process.env.X[y]", "require.resolve('x')", "require('fs')['constructor']",
		"const {'constructor': c} = Math.max; c('x')()", "{let child_process} child_process.execSync('x')", "child_process => 1; child_process.x()", "try{}catch(vm){} vm.x()",
		"const process = 1; process.execve('x')", "Error.prepareStackTrace = (e, s) => s; new Error().stack[0].getThis()", "fetch('x')", "with (a) b",
	} {
		if computes(text) {
			t.Errorf("%q is taken to start nothing", text)
		}
	}
}

func TestStartsNothing(t *testing.T) {
	for _, text := range []string{
		"print(40 + 2)", "import json; print(json.load(open('a.json'))['x'])", "import sys, re\nprint(re.compile(r'a+').findall(sys.stdin.read()))",
		"from pathlib import Path\nprint([p.name for p in Path('.').glob('*.go')])",
		"import os\nprint(os.environ.get('HOME'), os.listdir('.'))", "import ast; print(ast.literal_eval('[1]'))",
		"import numpy; print(numpy.__version__)", "import numpy as np; print('np', np.__version__)", "import sqlite3; print(sqlite3.sqlite_version)", "import torch\nprint(torch.version.cuda)",
	} {
		if !startsNothing(text) {
			t.Errorf("%q is taken to start something", text)
		}
	}
	for _, text := range []string{
		"import os; os.system('rm x')", "import os; os.popen('rm x')", "from os import execvp as e; e('rm', ['rm', 'x'])", "import subprocess as s; s.run('x')",
		"__import__('o' + 's')", "getattr(sys, 'mod' + 'ules')", "import sys; sys.modules['o' + 's']", "eval('1')", "exec('1')", "import pty; pty.spawn('x')",
		"import os as o, subprocess", "import(\nos)", "import yaml; yaml.load(x)", "import x", "import json, x", "from .x import y", "import json\\\n, x",
		"from json import decoder as d; import x.y", "import json as j, ctypes as c", "\uff45val('1')", "import json.x, timeit", "import string; string.Formatter().get_field('0', [x], {})",
		"().__class__", "import pip.__main__", "import x as print; print('y')", "import x; print(x.y())", "import x; x.y()", "from x import y as print; print(y)", "import x; print(x.y); x.z()", "import x; print(x[y])", "import x; print('y' % x)", "import sqlite3; c.enable_load_extension(1)",
		"import queue; queue.types.FunctionType(c, {})()", "import traceback; traceback.codeop.CommandCompiler()('x')", "import enum; enum.bltns.x", "type(lambda: 0)((x for x in y).gi_code.replace(co_consts=()), {})()",
		"import posix", "import os; os.fork()", "import os; os.posix_spawn('x', [], {})", "import json;import x", "import\tx", "import json\fimport x", "if 1:import x",
		"import operator; operator.attrgetter('a')(x)", "import asyncio", "import os; os.startfile('x')", "from importlib import reload", "yield from x",
	} {
		if startsNothing(text) {
			t.Errorf("%q is taken to start nothing", text)
		}
	}
}
