package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/integration/client"
)

// A call is a tool and its arguments.
type call struct {
	tool string
	args map[string]any
}

func (c call) params() []byte {
	raw, err := json.Marshal(map[string]any{"name": c.tool, "arguments": c.args})
	if err != nil {
		panic(err) // arguments are made of strings, numbers and booleans
	}
	return raw
}

// batch makes calls at once and returns their answers, with the time from the first request to the last answer.
func (s *server) batch(calls ...call) ([]answer, time.Duration, error) {
	params := make([][]byte, len(calls))
	for i, c := range calls {
		params[i] = c.params()
	}
	all := make([]*pending, len(calls))
	for i := range calls {
		p, err := s.send("tools/call", params[i])
		if err != nil {
			return nil, 0, err
		}
		all[i] = p
	}
	answers := make([]answer, len(calls))
	var last time.Time
	for i, p := range all {
		a, err := p.wait()
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", calls[i].tool, err)
		}
		if answers[i] = a; a.at.After(last) {
			last = a.at
		}
	}
	return answers, last.Sub(all[0].sent), nil
}

// call makes one call that has to work.
func (s *server) call(c call) (*client.Result, time.Duration, error) {
	answers, took, err := s.batch(c)
	if err != nil {
		return nil, 0, err
	}
	r, err := answers[0].decode()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", c.tool, err)
	}
	return r, took, nil
}
