package command

import "strings"

// steers reports whether a variable can change which program runs, or make one
// run something else: search paths, preloads, start-up files, pagers, editors,
// compiler and interpreter options, files of configuration that may hold
// commands.
func steers(name string) bool {
	if listed("steering variables", name) {
		return true
	}
	for prefix := range table().lists["steering prefixes"] {
		if strings.HasPrefix(name, prefix) {
			return !listed("harmless variables", name)
		}
	}
	return false
}

// harmlessValue reports whether a steering variable is given a value that
// steers nowhere.
func harmlessValue(name, value string) bool {
	return listed("harmless assignments", name+"="+value) || oneOf(name, "NODE_OPTIONS GOFLAGS MAKEFLAGS RUSTFLAGS CC CXX MAVEN_OPTS GOPROXY GOTOOLCHAIN") && harmlessOptions().MatchString(value)
}

// harmlessOptions matches what variables that hold options are given as a rule: it names no program
// of the workspace and no file.
var harmlessOptions = regular(`^(--(max-old-space-size=\d+|no-warnings|enable-source-maps|experimental-vm-modules|trace-\w+)\b ?|-(mod=(mod|vendor|readonly)|count=\d+|tags=[\w,]+|p=\d+|race|v|trimpath)\b ?)*$|` +
	`^-?(j ?\d*|s|k)$|^(-[ADW] ?[\w-]+|-C ?(target-cpu|opt-level|debuginfo)=[\w-]+| )*$|^(gcc|clang|cc|g\+\+|clang\+\+|c\+\+)(-\d+)?$|^(-Xm[sx]\d+[kmg]? ?)*$|^(direct|off|local|auto)$`)

// safeLead reports whether an allow rule passes the variable in front of a
// command: those that only change locale, colour, verbosity or the target of a
// build.
func safeLead(name string) bool {
	return listed("safe variables", name) || strings.HasPrefix(name, "LC_")
}

// keepsPath reports whether PATH is given a value with which programs are found as before, but for those that were not
// found.
func keepsPath(name, value string) bool { return name == "PATH" && addsToPath().MatchString(value) }

// addsToPath matches a PATH that keeps what it has, with directories after it or, from
// the home directory or the system, before it.
var addsToPath = regular(`^"?(((\$HOME|~|/usr|/opt)/[\w./-]+):)*\$(PATH|\{PATH\})(:[\w./$~-]+)*"?$`)
