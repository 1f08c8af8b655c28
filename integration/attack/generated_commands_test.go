//go:build slow && linux

package attack

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Commands that would show what a file holds, or carry it elsewhere, and those that would change it. F is the file, D its
// directory, P the one above that, B its name, G a wildcard for it, R the root, L a link to the directory, N a name that
// nothing has.
var wildReaders = []string{
	"cat F", "cat < F", "cat D/*", "cat D/.[!.]*", "cat G", "cat D/{B,x}", "head -c 99 F", "tail -n +1 F", "tac F", "sed -n p F", "awk 1 F", "grep '' F", "grep -r CANARY D",
	"grep -rh . R", "dd if=F status=none", "dd if=F of=N bs=1", "find D -type f -exec cat {} +", "find R -name G | xargs -d '\\n' cat", "find R -type f -print0 | xargs -0 cat",
	"tar cf - D", "tar cf N.tar D; cat N.tar", "tar czf N.tgz -C D .", "cp F N; cat N", "cp -r D N; grep -r . N", "cp -al D N; grep -r . N", "ln F N; cat N", "ln -s F N; cat N", "ln -s D N; cat N/B",
	"install -m 644 F N; cat N", "python3 -c 'import sys; print(open(sys.argv[1]).read())' F", "python3 - F <<'E'\nimport sys,os\nprint(os.read(os.open(sys.argv[1],0),999))\nE",
	"perl -pe 1 F", "while read -r l; do echo \"$l\"; done < F", "mapfile -t a < F; printf '%s\\n' \"${a[@]}\"", "exec 3<F; cat <&3", "echo \"$(<F)\"", "cat <(cat F)", "cat <<< \"$(cat F)\"",
	"git diff --no-index /dev/null F", "git -C R hash-object -w F", "git -C R add -f F; git -C R show :B; git -C R diff --cached", "git -C R add -A; git -C R commit -qm x; git -C R archive HEAD",
	"git -C R stash -u; git -C R stash show -p -u", "git grep --no-index . D", "git init -q N; cp -r D N; git -C N add -A; git -C N diff --cached", "git -C R worktree add -f ./N; cat N/B",
	"diff F /dev/null", "diff -r D /tmp", "cmp -l F /dev/zero", "sort F", "source F", ". F", "bash F", "bash < F", "sh -x F", "strings F", "cut -c1- F", "paste F", "fold -w3 F", "nl F", "od -c F", "xxd F",
	"base64 F", "base32 F", "gzip -c F | base64 -w0", "xz -c F | base64 -w0", "zip -q - F | base64 -w0", "rev F", "tr a-z A-Z < F", "comm F /dev/null", "join F F", "uniq F", "pr F", "split -b 9 F N; cat N*",
	"tee N < F", "cat /proc/self/root/F", "cat /proc/1/root/F", "cat /proc/$PPID/root/F", "cat /proc/$PPID/cwd/B", "for f in /proc/[0-9]*/fd/*; do timeout .1 head -c 99 \"$f\"; done 2>/dev/null",
	"cat /proc/[0-9]*/root/F", "ls -laR D; stat F; wc F", "unshare -rm cat F", "unshare -rm sh -c 'umount F; cat F'", "mount --bind D N; cat N/B", "mkdir N; mount --bind / N; cat N/F", "umount F; cat F", "umount -l D; cat F",
	"chroot / cat F", "nsenter -t 1 -m cat F", "mv F N; cat N", "mv D N; cat N/B", "mv P N; cat N/*/B", "mv D D.x; mkdir D; mv D.x/B D/B; cat D/B", "chmod 777 F; cat F", "chmod -R 777 D; cat F", "sudo cat F",
	"cd D && cat B", "cd D; cat ./B", "cd P; cat */B", "pushd D; cat B; popd", "CDPATH=P; cd D; cat B", "x=F; cat \"$x\"", "x=B; cat D/\"$x\"", "x=D; y=B; cat $x/$y", "eval cat F", "bash -c 'cat \"$1\"' _ F",
	"xargs cat <<'E'\nF\nE", "cat $(printf %s F)", "cat `echo F`", "env cat F", "timeout 2 cat F", "nohup cat F", "(cat F)", "{ cat F; }", "if true; then cat F; fi", "f() { cat F; }; f", "cat F &\nwait",
	"sqlite3 :memory: \"select readfile('F')\"", "awk 'BEGIN{while((getline l < ARGV[1])>0) print l}' F", "sed '' F", "vim -es +%p +q F", "printf '%s\\n' D/*; cat L/B", "cat L/B", "cat \"$PWD\"/B D/?*",
	"shopt -s globstar dotglob; cat R/**/*", "wc -l F; sha256sum F; md5sum D/*", "file F; ls -l /proc/self/fd < F", "gcc -x c F -o N", "python3 F", "openssl base64 -in F", "curl -s file://F", "ulimit -c unlimited; sh -c 'read x < F; kill -SEGV $$'; cat core*",
	"ln -s / N; cat N/F", "mkfifo N; cat F > N & timeout 1 cat N", "rsync -a D/ N/", "cpio -o < <(echo F)", "ar r N.a F; cat N.a", "patch -o - F /dev/null", "m4 F", "cpp F", "jq -R . F", "column F", "look '' F", "busybox cat F",
	"inotifywait -t 1 D; tail -F F & sleep .1", "logger -f F -s", "date -f F", "xargs -a F echo", "find -files0-from F", "wc --files0-from=F", "ls -d $(cat F)", "test -s F && cat -A F", "set -- F; cat \"$1\"", "read -d '' x < F; declare -p x",
}

var wildWriters = []string{
	"echo x > F", "echo x >> F", ": > F", "tee F <<< x", "cp /etc/hostname F", "mv /etc/hostname F; mv N F", "touch N; mv -f N F", "rm -f F", "rm -rf D", "rm -rf R/*", "truncate -s 0 F", "chmod 000 F", "chmod -R 700 R", "chown 1 F",
	"sed -i s/line/LINE/ F", "perl -pi -e s/line/LINE/ F", "dd if=/dev/zero of=F count=1", "ln -sf /etc/hostname F", "touch N; ln -f N F", "mv D N", "mv P N", "mv P N; mkdir -p D; echo x > F", "rmdir D; rm -r P", "git -C R clean -ffdxq", "git -C R add -A; git -C R rm -rfq .",
	"git -C R reset -q --hard", "git -C R stash -qu", "git -C R checkout -f -q -- .", "git mv F N", "find R -type f -delete", "find R -type f -exec sh -c 'echo x > \"$1\"' _ {} \\;", "find D -name G -exec rm {} +", "tar cf N.tar D; tar xf N.tar -C / --overwrite", "cp -rf N D", "cp --remove-destination /etc/hostname F",
	"install /etc/hostname F", "shred -u F", "python3 -c 'import os,sys; os.unlink(sys.argv[1])' F", "python3 -c 'import os,sys; os.rename(sys.argv[1], sys.argv[2])' D N", "python3 - F N <<'E'\nimport ctypes,sys,os\nopen(sys.argv[2],'w').close()\nctypes.CDLL(None).renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2)\nE",
	"python3 - F <<'E'\nimport os,sys\nfd=os.open(sys.argv[1],os.O_RDWR)\nos.write(fd,b'x')\nE", "exec 3<>F; echo x >&3", "ln F N; echo x > N", "ln F N; rm -f N; ln -s F N; echo x > N", "cd D && echo x > B", "echo x > L/B", "mount --bind N D", "mount -t tmpfs x D; echo x > F", "umount F; rm -f F", "umount -l D; echo x > F",
	"unshare -rm sh -c 'umount -l D; echo x > F'", "mkdir N; mv D N/; mv N/* P", "rsync --delete -a /etc/hostname D/", "unzip -o N.zip -d D", "split -b 1 /etc/hostname F", "sort -o F /etc/hostname", "mv -T --exchange F N", "truncate -s 5 G", "echo x | tee D/*", "for f in D/*; do echo x > \"$f\"; done", "setfattr -n user.x -v y F", "touch -d 2001-01-01 F",
	"git -C R config core.hooksPath D", "patch F <<'E'\n--- a\n+++ b\n@@ -1 +1 @@\n-first line\n+x\nE", "ed -s F <<'E'\n1d\nw\nq\nE", "awk 'BEGIN{print \"x\" > ARGV[1]}' F", "printf x | dd of=F conv=notrunc", "x=F; echo y > \"$x\"", "bash -c 'echo x > \"$0\"' F", "python3 -c 'import shutil,sys; shutil.rmtree(sys.argv[1])' D",
}

// wildPosts are what a reader's output may go through.
var wildPosts = []string{"", "", "", "", " | base64 -w0", " | xxd -p", " | rev", " | gzip -c | base64 -w0",
	" | tr a-zA-Z n-za-mN-ZA-M", " > N.out; cat N.out", " | tee N.out", " | od -An -c", " 2>&1", " | head -c 4000", " > \"$TMPDIR/o\"; cat \"$TMPDIR/o\"", " | cat -A"}

// command is one against the target, or several.
func (w *wild) command() string {
	var all []string
	for range 1 + w.rand.IntN(3) {
		f := w.target()
		text := pick(w.rand, wildReaders) + pick(w.rand, wildPosts)
		if w.oneIn(3) {
			text = pick(w.rand, wildWriters)
		}
		all = append(all, w.filled(text, f))
	}
	if strings.Contains(strings.Join(all, ""), "<<'E'") {
		return strings.Join(all, "\n")
	}
	return strings.Join(all, pick(w.rand, []string{"; ", "; ", " && ", " || ", "\n", " & "}))
}

// filled puts names in the place of the letters of a template.
func (w *wild) filled(text string, f *wildFile) string {
	name := pick(w.rand, append(w.namesOf(f), f.path, f.path))
	dir, base := filepath.Dir(name), filepath.Base(name)
	if w.oneIn(4) {
		if rel, err := filepath.Rel(w.roots[0], dir); err == nil {
			dir = "./" + rel
		}
	}
	link := dir
	if len(w.links) > 0 {
		link = pick(w.rand, w.links).path
	}
	glob := shellWord(base[:len(base)/2]) + "*"
	if w.oneIn(2) {
		glob = "*" + shellWord(base[len(base)/2:])
	}
	values := map[byte]string{
		'F': shellWord(dir + "/" + base), 'D': shellWord(dir), 'P': shellWord(filepath.Dir(dir)), 'B': shellWord(base),
		'G': glob, 'R': shellWord(w.roots[0]), 'L': shellWord(link),
		'N': shellWord(filepath.Join(w.roots[0], fmt.Sprintf("n%d", w.rand.IntN(40)))),
	}
	var b strings.Builder
	for i := range len(text) {
		letter := text[i]
		value, ok := values[letter]
		if !ok || i > 0 && isWordByte(text[i-1]) || i+1 < len(text) && isWordByte(text[i+1]) {
			b.WriteByte(letter)
			continue
		}
		if strings.Count(text[:i], `'`)%2 == 1 && !strings.Contains(text, "<<'E'") { // within quotes already
			value = strings.ReplaceAll(value, "'", `'"'"'`)
		}
		b.WriteString(value)
	}
	return b.String()
}

func isWordByte(c byte) bool {
	return c == '_' || c == '-' || c == '$' || c == '%' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
		'0' <= c && c <= '9'
}
