package execgate

import (
	"bytes"
	"debug/elf"
	"io"
	"slices"
	"strings"
)

// headSize is how much of a file is read to see what loads it: the kernel reads scriptHead bytes of it, and the program
// headers of a linked file end within it.
const (
	headSize   = 1024
	scriptHead = 256 // BINPRM_BUF_SIZE
)

// scriptLine returns the interpreter that the first line of a file names, and its argument, as the kernel reads them
// (fs/binfmt_script.c); ok is false for a file that is not a script.
func scriptLine(head []byte) (interpreter, argument string, ok bool) {
	line := make([]byte, scriptHead) // what is missing is zero
	copy(line, head)
	line = line[:scriptHead-1]
	if !bytes.HasPrefix(line, []byte("#!")) {
		return "", "", false
	}
	line = line[2:]
	if end := bytes.IndexByte(append(line[:len(line):len(line)], at(head, scriptHead-1)), '\n'); end >= 0 {
		line = line[:min(end, len(line))]
	} else if name := bytes.TrimLeft(line, " \t"); !bytes.ContainsAny(name, " \t\x00") {
		return "", "", false // the name may go on
	}
	line = bytes.TrimLeft(bytes.TrimRight(line, " \t"), " \t")
	end := bytes.IndexAny(line, " \t\x00")
	if end < 0 {
		return string(line), "", len(line) > 0
	}
	interpreter = string(line[:end])
	if line[end] != 0 {
		rest, _, _ := bytes.Cut(bytes.TrimLeft(line[end:], " \t"), []byte{0})
		argument = string(rest)
	}
	return interpreter, argument, interpreter != ""
}

// at returns the byte at i of what is followed by zeros.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// isLoader reports whether a file is a dynamic loader: a program that loads and runs the file that it is given. It is
// linked, asks for no loader, and has the name of one.
func isLoader(head []byte, file io.ReaderAt) bool {
	if !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return false
	}
	f, err := elf.NewFile(file)
	if err != nil || f.Type != elf.ET_DYN || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return false
	}
	names, err := f.DynString(elf.DT_SONAME)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "ld") || strings.HasPrefix(name, "libc.") // the second is musl's
	})
}

// linked reports whether the beginning of a file is that of a program of 64 bits that asks for a loader, as nearly
// all are.
func linked(head []byte) bool {
	const class, order, offset, size, count, entry = 4, 5, 32, 54, 56, 56
	if len(head) < 64 || head[class] != byte(elf.ELFCLASS64) || head[order] != byte(elf.ELFDATA2LSB) {
		return false
	}
	if little(head[size:], 2) != entry {
		return false
	}
	begin := little(head[offset:], 8)
	for i := range little(head[count:], 2) {
		at := begin + i*entry
		if at >= uint64(len(head))-4 {
			return false
		}
		if elf.ProgType(little(head[at:], 4)) == elf.PT_INTERP {
			return true
		}
	}
	return false
}

// little reads n bytes, the lowest first.
func little(b []byte, n int) (v uint64) {
	for i := range n {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}
