package sandbox

import "github.com/toolhost/toolhost/guard/sandbox/execgate"

// ExecGateWorks reports why the programs that commands start cannot be judged on this machine with a backend, by
// trying; nil if they can.
func ExecGateWorks(b Backend) error { return execgate.Works(b == Namespaces) }
