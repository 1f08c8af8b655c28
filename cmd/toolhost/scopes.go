package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/mcpserver"
)

// scopeFlags say how calls of different conversations are distinguished.
type scopeFlags struct {
	keys     []string
	strict   bool
	argument bool
}

func (f *scopeFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.keys, "scope-key", nil,
		"a `NAME[=exact|shared]` of a key in _meta whose values name conversations, exact if each is one agent's alone; repeatable")
	flags.BoolVar(&f.argument, "session-argument", false,
		"give every tool an argument \"session\", for clients that cannot send _meta")
}

// addStrict adds the flag that only a server of many clients needs.
func (f *scopeFlags) addStrict(flags *pflag.FlagSet) {
	flags.BoolVar(&f.strict, "strict-scope", false, "refuse calls that do not name their conversation exactly")
}

func (f *scopeFlags) apply(cfg *mcpserver.Config) error {
	for _, text := range f.keys {
		key, err := mcpserver.ParseScopeKey(text)
		if err != nil {
			return usageError{fmt.Errorf("--scope-key: %w", err)}
		}
		cfg.ScopeKeys = append(cfg.ScopeKeys, key)
	}
	cfg.StrictScope, cfg.SessionArgument = f.strict, f.argument
	return nil
}
