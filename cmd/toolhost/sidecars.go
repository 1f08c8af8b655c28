package main

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/mcpserver"
)

// A sidecar is an additional server in the process of the server. Its listener is open from the start. If it never
// serves, the listener stays open until the process ends, which is soon.
type sidecar struct {
	announce func()
	serve    func(context.Context) error
}

// sidecars runs the additional servers while serve runs. No address is announced before all listeners are open.
func (f *hostFlags) sidecars(ctx context.Context, host *mcpserver.Host, kind string, begin func(),
	serve func() error) (err error) {
	defer f.observe.end(ctx, host.Log())
	scrapers, err := f.observe.open(host)
	if err != nil {
		return err
	}
	pages, err := f.console.open(host, kind)
	if err != nil {
		return err
	}
	f.record.open(host, kind, f.address)
	defer f.record.close()
	begin()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	all := append(scrapers, pages...)
	ended := make(chan error, len(all))
	for _, a := range all {
		go func() { ended <- a.serve(ctx) }()
		a.announce()
	}
	err = serve()
	stop()
	for range all {
		err = errors.Join(err, <-ended)
	}
	return err
}
