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
	for prefix := range table()["steering prefixes"] {
		if strings.HasPrefix(name, prefix) {
			return !listed("harmless variables", name)
		}
	}
	return false
}

// harmlessValue reports whether a value of a steering variable has no influence on what runs.
func harmlessValue(name, value string) bool {
	return listed("harmless assignments", name+"="+value) ||
		oneOf(name, "NODE_OPTIONS GOFLAGS MAKEFLAGS RUSTFLAGS CC CXX MAVEN_OPTS GOPROXY GOTOOLCHAIN") &&
			harmlessOptions().MatchString(value)
}

// harmlessOptions matches the usual values of variables that hold options. They name no file, and no program of the
// workspace.
var harmlessOptions = regular(`^(--(max-old-space-size=\d+|no-warnings|enable-source-maps|experimental-vm-modules|trace-\w+)\b ?|-(mod=(mod|vendor|readonly)|count=\d+|tags=[\w,]+|p=\d+|race|v|trimpath)\b ?)*$|` +
	`^-?(j ?\d*|s|k)$|^(-[ADW] ?[\w-]+|-C ?(target-cpu|opt-level|debuginfo)=[\w-]+| )*$|^(gcc|clang|cc|g\+\+|clang\+\+|c\+\+)(-\d+)?$|^(-Xm[sx]\d+[kmg]? ?)*$|^(direct|off|local|auto)$`)

// keepsPath reports whether an assignment only adds directories to PATH, see addsToPath.
func keepsPath(name, value string) bool { return name == "PATH" && addsToPath().MatchString(value) }

// addsToPath matches a value that keeps $PATH and adds directories: any after it, but before it only directories of
// the home directory or the system.
var addsToPath = regular(`^"?(((\$HOME|~|/usr|/opt)/[\w./-]+):)*\$(PATH|\{PATH\})(:[\w./$~-]+)*"?$`)
