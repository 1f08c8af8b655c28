package sandbox

import (
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/behalf"
	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// serveCalls answers the calls of the processes under a filter until the last one has ended. files are what
// appendListener has returned: none, or the filter's listener, and with it the table of Unix sockets if k makes their
// connections. execs judges the programs that they start. writes may be nil.
func serveCalls(files []int, k *connectgate.Connector, execs kernel.Judge, writes *WriteGate) error {
	if len(files) == 0 {
		return nil
	}
	judges := execgate.Calls(execs)
	for _, nr := range kernel.ModeChanges() {
		judges[nr] = behalf.ChangeMode
	}
	writes.serve(judges)
	if len(files) == 2 && k != nil {
		return k.Serve(files[0], files[1], judges)
	}
	contract.CloseAll(files[1:])
	l, err := kernel.NewListener(files[0])
	if err != nil {
		return err
	}
	go l.Serve(judges)
	return nil
}
