package guard

import "github.com/toolhost/toolhost/guard/settings"

// modeOf returns the mode that the settings ask for. An unknown name, or bypass
// where it is forbidden, is the default mode.
func modeOf(s *settings.Settings) string {
	switch s.DefaultMode {
	case settings.ModePlan, settings.ModeDontAsk, settings.ModeAcceptEdits, settings.ModeAuto:
		return s.DefaultMode
	case settings.ModeBypass:
		if !s.DisableBypass {
			return settings.ModeBypass
		}
	}
	return settings.ModeDefault
}

// modeRule returns the mode as the name of a rule.
func modeRule(mode string) string { return ruleMode + " " + mode }
