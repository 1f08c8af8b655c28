//go:build !slow

package scripts

import "github.com/toolhost/toolhost/integration/host"

var scriptSettings = []host.Setting{host.StdioModern, host.HTTPLegacy}

var scriptDirs = []string{"testdata/scripts"}
