package netstack

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
)

const (
	// maxLookups is how many queries of a sandbox are looked up outside at once. Further ones fail (SERVFAIL).
	maxLookups = 64
	// lookupTime limits a lookup outside.
	lookupTime = 10 * time.Second
	// lifetime is how long a program may keep an answer, in seconds.
	lifetime = 1
	// plainSize is the size of the largest UDP answer to a query without EDNS, ednsSize to any other. Longer answers are
	// asked for again by TCP, which carries up to streamSize.
	plainSize, ednsSize, streamSize = 512, 1232, 65535
	// queryTime is how long a TCP connection waits for the next query.
	queryTime = 10 * time.Second
	// maxName is the length of the longest name.
	maxName = 253
)

// serveUDP answers queries until the network is closed.
func (n *Network) serveUDP(conn *gonet.UDPConn) {
	defer conn.Close()
	defer context.AfterFunc(n.ctx, func() { conn.Close() })()
	buf := make([]byte, streamSize)
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		reply := func(answer []byte) {
			if answer != nil {
				_, _ = conn.WriteTo(answer, from) // a program that does not listen any more has no use for it
			}
		}
		n.answer(buf[:size], 0, reply)
	}
}

// serveTCP answers the queries of a connection one after the other.
func (n *Network) serveTCP(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(n.ctx, func() { conn.Close() })()
	for {
		conn.SetReadDeadline(time.Now().Add(queryTime))
		var head [2]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(head[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answers := make(chan []byte, 1)
		n.answer(query, streamSize, func(answer []byte) { answers <- answer })
		answer := <-answers
		if answer == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))),
			answer...)); err != nil {
			return
		}
	}
}

// answer calls reply once with the answer to a query, or with nil if the query gets none. limit is the size of the
// largest answer; 0 is that of UDP. It returns before a lookup outside has ended, and does not use query after it has
// returned.
func (n *Network) answer(query []byte, limit int, reply func([]byte)) {
	q, ok := parseQuery(query)
	if !ok {
		reply(nil)
		return
	}
	if limit == 0 {
		limit = q.size
	}
	if q.code != dnsmessage.RCodeSuccess {
		reply(q.pack(nil, q.code, limit))
		return
	}
	outside := n.outside(q)
	if outside == nil {
		answers, code := n.local(q)
		reply(q.pack(answers, code, limit))
		return
	}
	select {
	case n.lookups <- struct{}{}:
	default:
		reply(q.pack(nil, dnsmessage.RCodeServerFailure, limit))
		return
	}
	n.serving.Go(func() {
		defer func() { <-n.lookups }()
		ctx, cancel := context.WithTimeout(n.ctx, lookupTime)
		defer cancel()
		answers, code := outside(ctx)
		reply(q.pack(answers, code, limit))
	})
}

// A query is a question with one name.
type query struct {
	header   dnsmessage.Header
	question dnsmessage.Question
	name     string           // in lower case and without a final dot
	edns     bool             // the answer has an OPT record
	size     int              // of the largest answer by UDP
	code     dnsmessage.RCode // other than success: why there is no answer
}

// parseQuery reads a query. It reports false if the bytes are not a query with one question.
func parseQuery(b []byte) (q query, ok bool) {
	var p dnsmessage.Parser
	var err error
	if q.header, err = p.Start(b); err != nil || q.header.Response {
		return query{}, false
	}
	if q.question, err = p.Question(); err != nil {
		return query{}, false
	}
	q.name, q.size = canonical(q.question.Name.String()), plainSize
	switch _, err := p.Question(); {
	case !errors.Is(err, dnsmessage.ErrSectionDone):
		q.code = dnsmessage.RCodeFormatError
	case q.header.OpCode != 0, q.question.Class != dnsmessage.ClassINET:
		q.code = dnsmessage.RCodeNotImplemented
	case q.name == "":
		q.code = dnsmessage.RCodeNameError
	}
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return q, true
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return q, true
		}
		if h.Type == dnsmessage.TypeOPT {
			q.edns, q.size = true, min(max(int(h.Class), plainSize), ednsSize)
		}
		if p.SkipAdditional() != nil {
			return q, true
		}
	}
}

// canonical returns a name in lower case and without its final dot. It is empty if it is not the name of a host: each
// label is of ASCII letters, digits, "-" and "_", as all names that resolve and that rules can name.
func canonical(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if len(name) > maxName {
		return ""
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
		}) {
			return ""
		}
	}
	return name
}

// pack returns the answer to a query, without records if they need more than limit bytes.
func (q query) pack(answers []dnsmessage.ResourceBody, code dnsmessage.RCode, limit int) []byte {
	m := dnsmessage.Message{
		Header: dnsmessage.Header{ID: q.header.ID, Response: true, OpCode: q.header.OpCode,
			RecursionDesired:   q.header.RecursionDesired,
			RecursionAvailable: true, RCode: code},
		Questions: []dnsmessage.Question{q.question},
	}
	for _, body := range answers {
		head := dnsmessage.ResourceHeader{Name: q.question.Name, Class: dnsmessage.ClassINET, TTL: lifetime}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: body})
	}
	if q.edns {
		var head dnsmessage.ResourceHeader
		_ = head.SetEDNS0(ednsSize, dnsmessage.RCodeSuccess, false) // it has no errors
		m.Additionals = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.OPTResource{}}}
	}
	b, err := m.Pack()
	if err != nil { // a record from outside is not valid
		m.Answers, m.RCode = nil, dnsmessage.RCodeServerFailure
		b, _ = m.Pack()
	}
	if len(b) > limit {
		m.Answers, m.Truncated = nil, true
		b, _ = m.Pack()
	}
	return b
}

// local answers a query of which nothing leaves this machine.
func (n *Network) local(q query) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
	if q.name == "localhost" || strings.HasSuffix(q.name, ".localhost") {
		switch q.question.Type {
		case dnsmessage.TypeA:
			return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}, dnsmessage.RCodeSuccess
		case dnsmessage.TypeAAAA:
			return []dnsmessage.ResourceBody{&dnsmessage.AAAAResource{AAAA: netip.IPv6Loopback().As16()}},
				dnsmessage.RCodeSuccess
		}
		return nil, dnsmessage.RCodeSuccess
	}
	if strings.HasSuffix(q.name, ".arpa") {
		return n.reverse(q)
	}
	if q.question.Type != dnsmessage.TypeA {
		return nil, dnsmessage.RCodeSuccess
	}
	return n.standIn(q.name)
}

// standIn answers a query with the address of a name.
func (n *Network) standIn(name string) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
	a, ok := n.names.address(name)
	if !ok {
		return nil, dnsmessage.RCodeServerFailure
	}
	return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: a.As4()}}, dnsmessage.RCodeSuccess
}

// reverse answers a query for the name of an address.
func (n *Network) reverse(q query) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
	octets, ok := strings.CutSuffix(q.name, ".in-addr.arpa")
	parts := strings.Split(octets, ".")
	if !ok || q.question.Type != dnsmessage.TypePTR || len(parts) != 4 {
		return nil, dnsmessage.RCodeNameError
	}
	var b [4]byte
	for i, part := range parts {
		v, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return nil, dnsmessage.RCodeNameError
		}
		b[3-i] = byte(v)
	}
	host, ok := n.names.name(netip.AddrFrom4(b))
	if !ok {
		return nil, dnsmessage.RCodeNameError
	}
	name, err := dnsmessage.NewName(host + ".")
	if err != nil {
		return nil, dnsmessage.RCodeNameError
	}
	return []dnsmessage.ResourceBody{&dnsmessage.PTRResource{PTR: name}}, dnsmessage.RCodeSuccess
}

// outside returns how to answer a query with a lookup outside, or nil if none is needed or allowed.
func (n *Network) outside(q query) func(context.Context) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
	if q.name == "localhost" || strings.HasSuffix(q.name, ".localhost") || strings.HasSuffix(q.name, ".arpa") ||
		!n.config.Resolves(q.name) {
		return nil
	}
	switch q.question.Type {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA:
		return func(ctx context.Context) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
			list, err := n.config.Lookup(ctx, q.name)
			switch {
			case err != nil:
				return nil, codeOf(err)
			case len(list) == 0:
				return nil, dnsmessage.RCodeNameError
			case q.question.Type == dnsmessage.TypeAAAA: // the host is reached by the stand-in, by IPv6 outside too
				return nil, dnsmessage.RCodeSuccess
			}
			return n.standIn(q.name)
		}
	case dnsmessage.TypeTXT, dnsmessage.TypeMX, dnsmessage.TypeSRV:
		return func(ctx context.Context) ([]dnsmessage.ResourceBody, dnsmessage.RCode) {
			list, err := n.config.Records(ctx, q.name, q.question.Type)
			if err != nil {
				return nil, codeOf(err)
			}
			return list, dnsmessage.RCodeSuccess
		}
	}
	return nil
}

// codeOf returns the code for the error of a lookup.
func codeOf(err error) dnsmessage.RCode {
	var failure *net.DNSError
	if errors.As(err, &failure) && failure.IsNotFound {
		return dnsmessage.RCodeNameError
	}
	return dnsmessage.RCodeServerFailure
}
