package console

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
)

// The pages of questions.
type approvalPages struct{ *website }

// answer records the decision that a form contains.
func (s approvalPages) answer(w http.ResponseWriter, v pageRequest) {
	said, err := s.decide(v)
	s.tell(w, v, said, err,
		func(text string, failed bool, status int) { livePages(s).showWith(w, v, text, failed, status) })
}

func (s approvalPages) decide(v pageRequest) (string, error) {
	id, err := strconv.ParseUint(v.PostFormValue("question"), 10, 64)
	if err != nil {
		return "", fmt.Errorf("the form names no question: nothing was decided")
	}
	if err := s.operator.MayAnswer(); err != nil {
		return "", fmt.Errorf("nothing was decided. %w", err)
	}
	if action := v.PostFormValue("decision"); formActions[action] != "" {
		return s.console.fill(id, action, v.PostForm)
	}
	return s.console.answer(id, v.PostFormValue("decision"), clip(v.PostFormValue("reason"), maxReason))
}

// show serves the page of one question, or its outcome.
func (s approvalPages) show(w http.ResponseWriter, v pageRequest) {
	body := livePages(s).live(v)
	body.Waiting, body.Resolved = s.console.questions(cmp.Or(v.PathValue("id"), "-"))
	if len(body.Waiting)+len(body.Resolved) == 0 {
		s.gone(w, v, "Question", "There is no such question here, or it was settled long ago. A question that your client "+
			"asks is answered there.")
		return
	}
	s.write(w, v, http.StatusOK, layout{Page: "question", Title: "Question", Body: approvalBody{body, v.PathValue("id")}})
}

// maxReason is how many bytes of explanation a person can give the agent with a refusal.
const maxReason = 4 << 10
