package sandbox

import (
	"context"
	"net"
)

type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)
type ResolveFunc func(ctx context.Context, host string) ([]string, error)
type Refusal struct{ Host string }
type guarded struct{}
type proxy struct{ l net.Listener }

func newProxy(l net.Listener, n Network, o Options) *proxy { return &proxy{l} }
func (p *proxy) env() []string                             { return nil }
func (p *proxy) drain() []Refusal                          { return nil }
func (p *proxy) close()                                    { p.l.Close() }
func validateDomains([]string) error                       { return nil }
