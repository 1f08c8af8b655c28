package remote

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// tellEvery is how often it is told how much of the program has been sent.
const tellEvery = 2 * time.Second

// bringScript receives the program, checks it, tries it, and puts it in its place. The braces make the shell read all
// of it before it runs any of it: what follows in the input is the program.
const bringScript = `{
umask 077
e=$(mkdir -p "$d" 2>&1) || fail "the directory for the program cannot be made: $e"
own
t=$d/.new.$$
trap 'rm -f "$t"' 0
trap 'exit 1' 1 2 13 15
e=$( { : >"$t"; } 2>&1 ) || fail "the program cannot be written: $e"
if command -v gzip >/dev/null 2>&1; then z='gzip -dc' c=gzip; else z=cat c=plain; fi
echo "` + sendMark + `$c"
e=$( { $z >"$t"; } 2>&1 ) || fail "the program cannot be written: $e"
if command -v sha256sum >/dev/null 2>&1; then s=$(sha256sum <"$t"); elif command -v shasum >/dev/null 2>&1; then s=$(shasum -a 256 <"$t"); else s=$want; fi
[ "${s%% *}" = "$want" ] || fail "what arrived has another checksum, the link may have broken: ${s%% *}"
chmod 700 "$t"
e=$("$t" version 2>&1) || fail "the program does not run there: $e"
mv -f "$t" "$d/toolhost" || fail "the program cannot be put in its place"
trap - 0
find "$h/program" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} + 2>/dev/null
echo ` + doneMark + `
exit 0
}
`

// bring sends the program for a system, as uname names it.
func (l *Launcher) bring(ctx context.Context, system string, moving func()) error {
	file, done, err := l.program(system)
	if err != nil {
		return err
	}
	defer done()
	sum, err := checksum(file)
	if err != nil {
		return err
	}
	p, err := launch(ctx, l.Target, func() (string, error) {
		place, err := l.place()
		return place + "want=" + sum + "\n" + bringScript, err
	})
	if err != nil {
		return err
	}
	defer p.Close()
	_, coding, err := p.await(ctx, sendMark)
	if err == nil {
		err = l.send(ctx, p, file, coding == "gzip", moving)
	}
	if err != nil {
		return fmt.Errorf("%w (for %s; another directory: --far-dir DIR)", err, system)
	}
	return nil
}

// send writes the program to the far side and waits until it is in its place there. It fails when the far side takes
// nothing and says nothing for [launchTime].
func (l *Launcher) send(ctx context.Context, p *process, file string, compressed bool, moving func()) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { p.Close() })()
	stuck := time.AfterFunc(launchTime, func() {
		cancel(fmt.Errorf("%s took nothing and said nothing for %s while the program was sent", p.target.Argv[0],
			launchTime))
	})
	defer stuck.Stop()
	sent := make(chan error, 1)
	go func() { sent <- l.write(p, f, compressed, func() { stuck.Reset(launchTime); moving() }) }()
	_, _, err = p.scan(ctx, doneMark) // while it is sent: the far side may refuse the rest
	p.Close()
	if wrong := <-sent; err == nil {
		err = wrong
	}
	return err
}

// write writes the program to the input of a launcher, and closes the input. It calls moving after each part.
func (l *Launcher) write(p *process, f *os.File, compressed bool, moving func()) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w := p.in
	if compressed {
		if w, err = gzip.NewWriterLevel(p.in, gzip.BestSpeed); err != nil {
			return err
		}
	}
	_, err = io.Copy(w, &told{
		Reader: f, of: info.Size(), moving: moving, say: l.Say, what: "sending the program to " + l.Name,
	})
	if compressed {
		err = errors.Join(err, w.Close())
	}
	return errors.Join(err, p.in.Close())
}

// A told reader tells how much was read, at the beginning and from time to time.
type told struct {
	io.Reader
	read, of int64
	last     time.Time
	moving   func()
	say      func(string)
	what     string
}

// Read implements io.Reader.
func (t *told) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.read += int64(n)
	t.moving()
	if now := time.Now(); now.Sub(t.last) > tellEvery {
		t.last = now
		t.say(fmt.Sprintf("%s: %d of %d MB", t.what, t.read>>20, t.of>>20))
	}
	return n, err
}

// program returns the file with the program for a system. done removes what was unpacked.
func (l *Launcher) program(system string) (file string, done func(), err error) {
	done = func() {}
	if l.Binary != "" {
		return l.Binary, done, nil
	}
	goos, goarch := platform(system)
	if strings.Trim(goos+goarch, plainName) != "" {
		return "", done, fmt.Errorf("%s says that it is the system %.100q: name the program for it with --binary FILE",
			l.Name, system)
	}
	self, err := os.Executable()
	if err != nil {
		return "", done, err
	}
	if goos == runtime.GOOS && goarch == runtime.GOARCH {
		return self, done, nil
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	node := strings.NewReplacer("windows", "win32", "amd64", "x64").Replace(goos + "-" + goarch)
	if file := filepath.Join(filepath.Dir(self), "..", node, "toolhost"); isFile(file) { // as npm lays it out
		return file, done, nil
	}
	archive := filepath.Join(filepath.Dir(self), fmt.Sprintf("toolhost_%s_%s_%s.tar.gz", l.Version, goos, goarch))
	if isFile(archive) {
		return unpack(archive)
	}
	return "", done, fmt.Errorf("%s is %s, and the program for it is not here: "+
		"name it with --binary FILE, or put %s and checksums.txt of the release next to %s", l.Name, strings.TrimSpace(system), filepath.Base(archive), self)
}

// plainName are the characters of the names of systems: what the far side says becomes part of a path here.
const plainName = "abcdefghijklmnopqrstuvwxyz0123456789_"

// platform turns what uname says into the names of Go.
func platform(system string) (goos, goarch string) {
	name, machine, _ := strings.Cut(strings.ToLower(strings.TrimSpace(system)), " ")
	switch machine {
	case "x86_64":
		machine = "amd64"
	case "aarch64":
		machine = "arm64"
	}
	return name, machine
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// unpack takes the program out of an archive of a release, whose checksum must be in checksums.txt next to it.
func unpack(archive string) (file string, done func(), err error) {
	done = func() {}
	sum, err := checksum(archive)
	if err != nil {
		return "", done, err
	}
	list, err := os.ReadFile(filepath.Join(filepath.Dir(archive), "checksums.txt"))
	if err != nil {
		return "", done, err
	}
	if !strings.Contains("\n"+string(list), "\n"+sum+"  "+filepath.Base(archive)+"\n") {
		return "", done, fmt.Errorf("%s has not the checksum that checksums.txt says: download both again", archive)
	}
	f, err := os.Open(archive)
	if err != nil {
		return "", done, err
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return "", done, err
	}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err != nil {
			return "", done, fmt.Errorf("%s: no program in it: %w", archive, err)
		}
		if path.Base(h.Name) != "toolhost" || h.Typeflag != tar.TypeReg {
			continue
		}
		out, err := os.CreateTemp("", "toolhost-")
		if err != nil {
			return "", done, err
		}
		done = func() { os.Remove(out.Name()) }
		_, err = io.Copy(out, r)
		return out.Name(), done, errors.Join(err, out.Close())
	}
}

// checksum returns the SHA-256 of a file in hexadecimal.
func checksum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
