package sandbox

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
)

// caller is [proxy.Rules].Caller.
func (s *Sandbox) caller(from, to netip.AddrPort) (c proxy.Caller) {
	var gate *connectgate.Gate
	var chain []string
	var program connectgate.Program
	found := false
	if s.connecting != nil {
		gate, chain, program, found = s.connecting(from, to)
	}
	if !found {
		gate = s.hosts.Only()
	}
	names := make([]string, len(chain))
	for i, name := range chain {
		names[i] = quoted(name)
	}
	c.Program = strings.Join(names, " → ")
	if gate != nil {
		c.Ask = func(ctx context.Context, host, port string) (bool, string) {
			return gate.Answer(ctx, connectgate.Connection{Host: host, Port: port, Chain: chain, Program: program})
		}
		c.Used = func(secret, host, port, refused string) {
			gate.Answer(context.Background(), connectgate.Connection{Host: host, Port: port, Chain: chain, Program: program,
				Secret: secret, Refused: refused})
		}
	}
	return c
}

// quoted returns the name of a program for a line of text. The program chooses it.
func quoted(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._+-", r)
	}) {
		return strconv.QuoteToASCII(name)
	}
	return name
}
