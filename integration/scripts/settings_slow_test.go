//go:build slow

package scripts

import "github.com/toolhost/toolhost/integration/host"

var scriptSettings = host.Settings

var scriptDirs = []string{"testdata/scripts", "testdata/scripts/slow"}
