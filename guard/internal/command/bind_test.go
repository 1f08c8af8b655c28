package command

import (
	"strings"
	"testing"
)

func TestBound(t *testing.T) {
	for text, want := range map[string]string{
		"F=main.go; sed -n 1p $F":                                 "sed -n 1p main.go",
		"F=main.go; sed -n 1p \"$F\" ${F}.x":                      "sed -n 1p main.go main.go.x",
		"CMD=make; $CMD test":                                     "make test",
		"CMD='rm -rf'; $CMD x":                                    "rm -rf x",
		"CMD='rm -rf'; echo \"$CMD\"":                             "echo rm -rf",
		"D=a && F=$D/b && tar czf $F.tgz $F":                      "tar czf a/b.tgz a/b",
		"for t in all test; do make $t; done":                     "make all|make test",
		"for c in 'go version' make; do $c; done":                 "go version|make",
		"for a in x y; do for b in 1 2; do make $a$b; done; done": "make x1|make x2|make y1|make y2",
		"for s in a.sh b.sh; do tar cf \"$s.tar\" $s; done":       "tar cf a.sh.tar a.sh|tar cf b.sh.tar b.sh",
		"F=x; f() { make $F; }; f":                                "make x|f",
	} {
		a := Analyze(text)
		var got []string
		for _, c := range a.Commands {
			got = append(got, c.Text)
		}
		if strings.Join(got, "|") != want || len(a.Undecidable) > 0 {
			t.Errorf("%s: %q %q", text, got, a.Undecidable)
		}
	}
}

// What may run with another value, or before it has one, is not known.
func TestUnbound(t *testing.T) {
	for _, text := range []string{
		"$F rm x; F=echo", "false && F=echo; $F rm x", "true || F=echo; $F rm x", "(F=echo); $F rm x", "F=echo | true; $F rm x", "F=echo & $F rm x", "F=echo true; $F rm x",
		"if x; then F=echo; fi; $F rm x", "f() { F=echo; }; $F rm x", "while x; do F=echo; done; $F rm x", "x=$(F=echo); $F rm x",
		"F=echo; read F; $F x", "F=echo; IFS= read -r F < y; $F x", "F=echo; printf -v F rm; $F x", "F=echo; unset F; $F rm x", "F=echo; f() { F=rm; }; f; $F x", "F=echo; F+=x; $F x", "F=echo; F[0]=rm; $F x",
		"F=echo; mapfile F < y; $F x", "F=echo; eval \"$Y\"; $F x", "F=echo; . ./y; $F x", "F=echo; trap F=rm DEBUG; $F x", "F=echo; declare F=rm; $F x", "F=echo; declare \"F=rm\"; $F x", "F=echo; declare -n G=F; G=rm; $F x", "F=echo; getopts a F; $F x", "F=echo; exec {F}< y; $F x",
		"F=echo; : ${F:=rm}; $F x", "F=echo; $C F; $F x", "C=read; F=echo; $C F; $F x", "F=echo; for C in {read,:}; do $C F; done; $F x", "C='builtin read'; F=echo; $C F; $F x", "F=echo; \"${C[@]}\" F; $F x", "F=echo; coproc F { :; }; $F x", "F=echo; select F in rm; do :; done; $F x",
		"IFS=h; F=echo; $F x", "F=echo; bash -c '$F x'", "for F in echo; do :; done; $F x", "for F; do $F x; done", "F='a b'; \"$F\" x", "F=; $F rm x", "F=$(echo rm); $F x", "F=~/x; $F y", "F='r*'; $F x", "SECONDS=5; $SECONDS x", "UID=make; $UID x", "BASH_COMMAND=ls; $BASH_COMMAND x",
		"F=echo; { F=rm; } 2> y; $F x", "F=echo; ((F++)); $F x", "F=echo; ((F+=1)); $F x", "F=echo; wait -p F; $F x", "F=echo; complete -C x F; $F x",
		"for s in a b; do sed -n \"$s\" x; done; for s in -f; do sed \"$s\" y; done", "for f in *; do sort \"$f\"; done", "for f in -o a; do sort \"$f$x\"; done", "for f in a/*; do sort $f; done",
	} {
		if a := Analyze(text); len(a.Undecidable) == 0 {
			t.Errorf("%s: %+v", text, a.Commands)
		}
	}
}

func TestLoopItemsAreNoOptions(t *testing.T) {
	for text, want := range map[string]bool{
		"for f in src/*.go; do sed -i s/a/b/ \"$f\"; done": true, "for f in ./*; do sort \"$f\"; done": true, "for f in src/*.go README.md; do rg -c x \"$f\"; done": true,
		"for f in *.go; do sed -i s/a/b/ \"$f\"; done": false, "for f in src/*.go -x; do sort \"$f\"; done": false, "for f in src/*.go; do f=$x; sort \"$f\"; done": false, "for f in $x/*; do sort \"$f\"; done": false,
		"for f in src/*; do :; done; sort \"$f\"": false, "for f in src/*; do read f; sort \"$f\"; done": false,
	} {
		if a := Analyze(text); (len(a.Undecidable) == 0) != want {
			t.Errorf("%s: %q", text, a.Undecidable)
		}
	}
}

func TestNumbersOfCommands(t *testing.T) {
	for text, want := range map[string]bool{
		"a=$(date +%s); make; b=$(date +%s%N); echo $((b - a))": true, "n=$(ls | wc -l); echo $((n+1))": true, "echo $(($(date +%s) - 5))": true, "for i in $(seq 1 3); do echo $((i*2)); done": true,
		"n=$(wc -l < x); echo $((n * 2))": true, "n=$(grep -c x y 2>/dev/null || echo 0); echo $((n+1))": true, "s=$SECONDS; make; echo $((SECONDS - s))": true, "echo $((RANDOM % 10))": true, "x=5; let x++": true, "s=abc; n=2; echo ${s:0:n}": true,
		"a=(x y); for i in \"${!a[@]}\"; do echo ${a[$i]}; done": true,
		"n=$(cat x); echo $((n))":                                false, "n=$(wc -l x); echo $((n))": false, "n=$(grep -rc x .); echo $((n))": false, "n=$(grep -c x -r); echo $((n))": false, "n=$(grep -c x y z); echo $((n))": false, "n=$(date +%Z); echo $((n))": false,
		"n=$(wc -l < x 2>&1); echo $((n))": false, "n=$(date +%s; cat x); echo $((n))": false, "n=$(date $x +%s); echo $((n))": false, "date() { cat x; }; n=$(date +%s); echo $((n))": false, "n=$(cat x || echo 0); echo $((n))": false,
		"read RANDOM; echo $((RANDOM))": false, "s=$SECONDS; read SECONDS; echo $((s))": false, "declare -A a; for i in \"${!a[@]}\"; do echo $((i)); done": false, "echo $((x))": false, "n=$(seq -f \"$x\" 1); echo $((n))": false, "n=$(X=1 date +%s); echo $((n))": false, "x=1; declare \"x=$y\"; echo $((x))": false, "x=1; declare 'x=a[0]'; echo $((x))": false,
	} {
		if a := Analyze(text); (len(a.Undecidable) == 0) != want {
			t.Errorf("%s: %q", text, a.Undecidable)
		}
	}
}
