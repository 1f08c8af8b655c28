package recipe

import (
	"fmt"
	"strings"
	"testing"
)

const makeText = `
RM ?= rm -f
OUT := build
CLEAN = $(RM) -r $(OUT)
TOOLS = a b
include more.mk
.PHONY: all clean
all: $(OUT)/x
	@echo built
$(OUT)/%: %.c | dirs
	$(CC) -o $@ $<
dirs: ; mkdir -p $(OUT)
clean:
	-$(CLEAN)
distclean: clean
deep:
	$(MAKE) -C sub clean
	@$(foreach t,$(TOOLS),curl $(t);)
define sweep
rm $(1)
echo swept
endef
swept:
	$(call sweep,x)
x.c: CFLAGS = -g
x.c:
	touch x.c
lib: $(patsubst %.c,%.o,a.c)
%.o: %.c
	cc -c $<
long:
	echo a \
	  b
`

func TestMake(t *testing.T) {
	read := func(name string) (string, bool) { return "extra:\n\trm extra\n", name == "more.mk" }
	for _, tt := range []struct {
		goals, vars, want string
	}{
		{"", "", "extra: rm extra"}, // the first target is the one that is included
		{"all", "", "all: echo built|build/%: cc -o x x|x.c: touch x.c|dirs: mkdir -p build"},
		{"clean", "", "clean: rm -f -r build"},
		{"distclean", "", "clean: rm -f -r build"},
		{"clean", "OUT=/", "clean: rm -f -r /"},
		{"deep", "", "deep: make -C sub clean;t;a b;curl ;"},
		{"swept", "", "swept: rm;echo swept; x"},
		{"./clean", "", "clean: rm -f -r build"},
		{"nosuch", "", ""},
		{"long", "", "long: echo a    b"},
	} {
		vars := map[string]string{}
		if name, value, ok := strings.Cut(tt.vars, "="); ok {
			vars[name] = value
		}
		runs, all := Make(makeText, strings.Fields(tt.goals), vars, read)
		if got := format(runs); !all || !sameRuns(got, tt.want) {
			t.Errorf("make %s %s runs\n%s, want\n%s", tt.goals, tt.vars, got, tt.want)
		}
	}
}

// sameRuns compares but for white space.
func sameRuns(a, b string) bool {
	flat := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, ";", " ; ")), " ") }
	return flat(a) == flat(b)
}

func format(runs []Run) string {
	var out []string
	for _, r := range runs {
		out = append(out, r.Target+": "+strings.ReplaceAll(r.Text, "\n", ";"))
	}
	return strings.Join(out, "|")
}

func TestMakeWhenRead(t *testing.T) {
	for text, want := range map[string]string{
		"$(shell rm a)\nall:;":             "rm a",
		"X := $(shell cd x && rm a)\nall:": "cd x && rm a",
		"X != rm a\nall:":                  "rm a",
		"ifeq ($(shell rm a),)\nendif\na:": "rm a",
		"export X = $(shell rm a)\nall:":   "rm a",
		"all: $(shell rm a)\n\techo x":     "rm a|all: echo x",
		"all:\n\techo $(shell rm a)":       "|all: echo $(rm a)",
		"A = $(B)\nB = $(A)\nall:\n\t$(A)": "",
	} {
		runs, _ := Make(text, nil, nil, func(string) (string, bool) { return "", false })
		got := strings.TrimPrefix(format(runs), "(when it is read): ")
		if !sameRuns(got, strings.TrimPrefix(want, "|")) {
			t.Errorf("%q runs %q, want %q", text, got, want)
		}
	}
}

// What multiplies is given up, and said to be.
func TestMakeBombs(t *testing.T) {
	var vars strings.Builder
	for i := range 19 {
		fmt.Fprintf(&vars, "A%d = %s\n", i, strings.Repeat(fmt.Sprintf("$(A%d)", i+1), 10))
	}
	var goals strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&goals, "a%d: a%d\n%%.a%d: %%.b\n", i, i+1, i)
	}
	for name, text := range map[string]string{
		"variables": vars.String() + "all:\n\t$(A0)",
		"targets":   goals.String(),
		"shells":    strings.Repeat("$(shell ", 100000),
		"appending": strings.Repeat("A += x\n", 100000),
		"brackets":  strings.Repeat("$(", 100000),
	} {
		_, all := Make(text, nil, nil, func(string) (string, bool) { return text, true })
		if all && name != "brackets" {
			t.Errorf("%s: all of it was looked at", name)
		}
	}
	if _, all := Task("tasks:\n"+strings.Repeat("  a: [*a, *a]\n", 20), nil); all {
		t.Error("aliases of YAML: all of it was looked at")
	}
}

func TestScripts(t *testing.T) {
	text := `{"scripts":{"build":"tsc","prebuild":"rm -rf dist","build:a":"a","x":["one",{"cmd":"two"}],"y":"@php z"},"tasks":{"t":{"command":"deno run"}}}`
	for names, want := range map[string]string{
		"build": "build: tsc|prebuild: rm -rf dist", "build:*": "build:a: a", "x": "x: one;two", "y": "y: php z", "t": "t: deno run", "none": "", "": "",
	} {
		if got := format(Scripts(text, strings.Fields(names))); got != want {
			t.Errorf("%q runs %q, want %q", names, got, want)
		}
	}
	if runs := Scripts("{", []string{"x"}); runs != nil {
		t.Errorf("no JSON runs %v", runs)
	}
}

func TestJust(t *testing.T) {
	text := "tool := 'rm'\nalias c := clean\nbuild target='x': (prep \"a\") && after\n    @cc {{target}}\nprep:\n  {{tool}} x\nafter:\n\t-echo\nclean:\n    #!/bin/sh\n    rm -rf y\n"
	for names, want := range map[string]string{
		"": "build: cc x|prep: rm x|after: echo", "c": "clean: #!/bin/sh;rm -rf y", "none": "",
	} {
		if got := format(Just(text, strings.Fields(names))); got != want {
			t.Errorf("%q runs %q, want %q", names, got, want)
		}
	}
}

func TestTask(t *testing.T) {
	text := "vars:\n  TOOL: rm\n  NOW: {sh: date}\ntasks:\n  default: [{task: b}]\n  b:\n    deps: [c]\n    aliases: [bee]\n    cmds:\n      - '{{.TOOL}} x'\n      - cmd: two\n  c: one\n"
	const when = "(when it is read): date"
	for names, want := range map[string]string{
		"": when + "|default: |b: rm x;two;;|c: one", "bee": when + "|b: rm x;two;;|c: one", "c": when + "|c: one",
	} {
		runs, all := Task(text, strings.Fields(names))
		if got := format(runs); got != want || !all {
			t.Errorf("%q runs %q, want %q", names, got, want)
		}
	}
}

func FuzzMake(f *testing.F) {
	f.Add(makeText)
	f.Add("a:b;$(")
	f.Add("define\n=\n%:%:%\n\t$")
	f.Fuzz(func(_ *testing.T, text string) {
		Make(text, nil, nil, func(string) (string, bool) { return text, true })
		Just(text, nil)
		Scripts(text, []string{"*"})
	})
}
