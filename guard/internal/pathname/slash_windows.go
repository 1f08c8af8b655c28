package pathname

import (
	"path/filepath"
	"strings"
)

// Slashed returns an absolute path in the form rules are compared in: with slashes,
// one in front of a drive (/C:/x), two in front of a share (//server/share/x), and
// none after.
func Slashed(name string) string {
	name = strings.TrimSuffix(filepath.ToSlash(name), "/")
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

// Native returns the system's form of a path that Slashed returned. A drive gets its slash again: `C:` alone is the
// current directory of the process on that drive.
func Native(name string) string {
	if !strings.HasPrefix(name, "//") {
		name = strings.TrimPrefix(name, "/")
	}
	name = filepath.FromSlash(name)
	if volume := filepath.VolumeName(name); volume != "" && volume == name {
		name += `\`
	}
	return name
}

// IsVolume reports whether a path is that of a drive or a share, above which there
// is nothing to look up.
func IsVolume(name string) bool {
	name = Native(name)
	return filepath.VolumeName(name)+`\` == name
}

// VolumePattern turns //c/x, as Claude Code writes it, into /C:/x.
func VolumePattern(text string) string {
	if len(text) > 2 && text[0] == '/' && text[2] == '/' {
		return "/" + strings.ToUpper(text[1:2]) + ":" + text[2:]
	}
	return text
}
