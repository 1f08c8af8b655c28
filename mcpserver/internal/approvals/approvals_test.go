package approvals

import (
	"crypto/sha256"
	"strings"
	"testing"
)

// aCall stands for a call.
func aCall() []byte {
	sum := sha256.Sum256([]byte("a call"))
	return sum[:]
}

// Who asks all the time fills no memory and gives up no one else's questions.
func TestOpenQuestionsAreBounded(t *testing.T) {
	q := New()
	call := aCall()
	others := q.Issue("other", call)
	first := q.Issue("p", call)
	var last string
	for range 3 * MaxOpen {
		last = q.Issue("p", call)
	}
	if len(q.pending) != MaxOpen+1 || q.byAge.Len() != len(q.pending) {
		t.Errorf("%d questions are open, %d by age", len(q.pending), q.byAge.Len())
	}
	if err := q.Redeem(first, call); err == nil {
		t.Error("a question that was given up is answered")
	}
	for _, state := range []string{others, last} {
		if err := q.Redeem(state, call); err != nil {
			t.Error(err)
		}
	}
	if q.perPrincipal["other"] != 0 || q.perPrincipal["p"] != MaxOpen-1 {
		t.Errorf("it is counted %v", q.perPrincipal)
	}
}

// No state but those that were posed is taken.
func FuzzRequestState(f *testing.F) {
	q := New()
	call := aCall()
	posed := q.Issue("p", call)
	f.Add(posed)
	f.Add(posed[1:])
	f.Add(strings.ToUpper(posed))
	f.Add(posed + "\n")
	f.Add("")
	f.Add("../../x")
	f.Fuzz(func(t *testing.T, state string) {
		if _, _, err := q.parse(state); err != nil {
			return
		}
		if state != posed {
			t.Errorf("%q is taken", state)
		}
	})
}
