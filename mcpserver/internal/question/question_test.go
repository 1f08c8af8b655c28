package question

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
	others := q.Pose("other", call)
	first := q.Pose("p", call)
	var last string
	for range 3 * maxOpen {
		last = q.Pose("p", call)
	}
	if len(q.open) != maxOpen+1 || q.byAge.Len() != len(q.open) {
		t.Errorf("%d questions are open, %d by age", len(q.open), q.byAge.Len())
	}
	if err := q.Settle(first, call); err == nil {
		t.Error("a question that was given up is answered")
	}
	for _, state := range []string{others, last} {
		if err := q.Settle(state, call); err != nil {
			t.Error(err)
		}
	}
	if q.of["other"] != 0 || q.of["p"] != maxOpen-1 {
		t.Errorf("it is counted %v", q.of)
	}
}

// No state but those that were posed is taken.
func FuzzRequestState(f *testing.F) {
	q := New()
	call := aCall()
	posed := q.Pose("p", call)
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
