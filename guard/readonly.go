package guard

import "toolhost/guard/internal/command"

func readsOnly(command.Simple) bool { return false }

func (l *line) onlyReads() bool { return false }

func (l *line) reads(command.Simple) bool { return false }
