package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// A notebook is a log that can be read while it is written.
type notebook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *notebook) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *notebook) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

func openTokens(t *testing.T, file string) (*TokenFile, *notebook) {
	t.Helper()
	log := &notebook{}
	f, err := OpenTokenFile(file, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f, log
}

func add(t *testing.T, file, name string, rights Rights) string {
	t.Helper()
	bearer, _, err := AddToken(file, name, rights, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	return bearer
}

// kindOf is the kind of a refusal; -1 when there was none.
func kindOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return int(e.Kind)
	}
	return -1
}

func TestTokenLife(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	file := filepath.Join(t.TempDir(), "new", "tokens.json")
	f, log := openTokens(t, file) // which is not there yet
	a := add(t, file, "a", Read)
	b := add(t, file, "b", All)
	who, err := f.Verify(t.Context(), a)
	if err != nil || who.Principal != "token:a" || who.Rights != Read {
		t.Fatalf("the new token is %+v, %v", who, err)
	}
	other, err := f.Verify(t.Context(), b)
	if err != nil || other.Principal != "token:b" || other.Rights != All {
		t.Fatalf("the other new token is %+v, %v", other, err)
	}
	if err := RevokeToken(file, "a"); err != nil {
		t.Fatal(err)
	}
	<-who.Valid.Done() // without a request: the file is watched
	if other.Valid.Err() != nil {
		t.Error("the revocation of one took the other back")
	}
	if _, err := f.Verify(t.Context(), a); kindOf(err) != int(Invalid) {
		t.Errorf("the revoked token: %v", err)
	}
	if again := add(t, file, "a", Read); again == a {
		t.Error("a token came twice")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), a) || strings.Contains(string(raw), b) ||
		strings.Contains(string(raw), strings.TrimPrefix(b, tokenPrefix)) {
		t.Error("the file holds a token")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Verify(t.Context(), b); kindOf(err) != int(Invalid) || other.Valid.Err() == nil {
		t.Errorf("without the file the token is good: %v", err)
	}
	if !strings.Contains(log.String(), "is gone") {
		t.Errorf("nobody was told: %s", log)
	}
}

func TestChangedRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	bearer := add(t, file, "a", All)
	f, _ := openTokens(t, file)
	before, err := f.Verify(t.Context(), bearer)
	if err != nil {
		t.Fatal(err)
	}
	list, err := ListTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	list[0].Rights = Read
	write(t, file, tokenList{list})
	after, err := f.Verify(t.Context(), bearer)
	if err != nil || after.Rights != Read || before.Valid.Err() == nil || after.Valid.Err() != nil {
		t.Errorf("after the rights were changed: %+v, %v; what was open goes on: %v", after, err,
			before.Valid.Err() == nil)
	}
}

func TestTokenExpires(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	bearer, token, err := AddToken(file, "a", Read, time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	f, _ := openTokens(t, file)
	if who, err := f.Verify(t.Context(), bearer); err != nil || !who.Expires.Equal(token.Expires) {
		t.Errorf("got %+v, %v", who, err)
	}
	token.Expires = time.Now().Add(-time.Second)
	write(t, file, tokenList{[]Token{token}})
	if _, err := f.Verify(t.Context(), bearer); kindOf(err) != int(expiredToken) {
		t.Errorf("an expired token: %v", err)
	}
	if list, err := ListTokens(file); err != nil || len(list) != 1 || !list[0].Expired(time.Now()) {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

func write(t *testing.T, file string, content any) {
	t.Helper()
	text, ok := content.(string)
	if !ok {
		raw, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		text = string(raw)
	}
	if err := privatefile.Replace(file, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// brokenTokens are contents that must not be believed.
var brokenTokens = map[string]string{
	"nothing":         ``,
	"no JSON":         `{"tokens":[`,
	"another shape":   `[]`,
	"more":            `{"tokens":[]}{"tokens":[]}`,
	"a misspelt end":  `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":["read"],"expire":"2020-01-01T00:00:00Z"}]}`,
	"no name":         `{"tokens":[{"sha256":"` + sum + `","rights":["read"]}]}`,
	"a bad name":      `{"tokens":[{"name":"a:b","sha256":"` + sum + `","rights":["read"]}]}`,
	"no digest":       `{"tokens":[{"name":"a","rights":["read"]}]}`,
	"a short digest":  `{"tokens":[{"name":"a","sha256":"00","rights":["read"]}]}`,
	"no rights":       `{"tokens":[{"name":"a","sha256":"` + sum + `"}]}`,
	"empty rights":    `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":[]}]}`,
	"unknown rights":  `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":["root"]}]}`,
	"rights as text":  `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":"read"}]}`,
	"a name twice":    `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":["read"]},{"name":"a","sha256":"1` + sum[1:] + `","rights":["read"]}]}`,
	"a digest twice":  `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":["read"]},{"name":"b","sha256":"` + sum + `","rights":["read"]}]}`,
	"tokens twice":    `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":["read"]}],"tokens":[]}`,
	"an end twice":    `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":["read"],"expires":"2020-01-01T00:00:00Z","Expires":"2999-01-01T00:00:00Z"}]}`,
	"rights twice":    `{"tokens":[{"name":"a","sha256":"` + sum + `","rights":["read"],"rights":["exec"]}]}`,
	"too many tokens": `{"tokens":[` + strings.Repeat(`{},`, maxTokens) + `{}]}`,
}

func TestBrokenFile(t *testing.T) {
	for name, content := range brokenTokens {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tokens.json")
			bearer := add(t, file, "a", Read)
			f, log := openTokens(t, file)
			who, err := f.Verify(t.Context(), bearer)
			if err != nil {
				t.Fatal(err)
			}
			write(t, file, content)
			for range 5 {
				if _, err := f.Verify(t.Context(), bearer); err != nil {
					t.Errorf("the last good state is not in force: %v", err)
				}
			}
			if n := strings.Count(log.String(), "stays in force"); n != 1 || who.Valid.Err() != nil {
				t.Errorf("it was said %d times, and the token's validity is %v", n, who.Valid.Err())
			}
			if _, err := OpenTokenFile(file, slog.New(slog.DiscardHandler)); err == nil ||
				!strings.Contains(err.Error(), file) {
				t.Errorf("a start with it: %v", err)
			}
			if _, _, err := AddToken(file, "b", Read, 0, ""); err == nil {
				t.Error("a token was added to it, and the rest was lost")
			}
			write(t, file, tokenList{Tokens: []Token{}})
			if _, err := f.Verify(t.Context(), bearer); kindOf(err) != int(Invalid) {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
}

func TestFileOfOthers(t *testing.T) {
	if os.PathSeparator != '/' {
		t.Skip("no file modes on this system")
	}
	file := filepath.Join(t.TempDir(), "tokens.json")
	bearer := add(t, file, "a", Read)
	f, _ := openTokens(t, file)
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o602, 0o777} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTokenFile(file, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %v: %v", mode, err)
		}
		if _, err := f.Verify(t.Context(), bearer); err != nil {
			t.Errorf("mode %v: the last good state is not in force: %v", mode, err)
		}
	}
	if _, err := OpenTokenFile(t.TempDir(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a directory was taken for a tokens file")
	}
}

// TestFileOfRoot: a group may read what root gives it, as Kubernetes mounts a Secret, and others may not.
func TestFileOfRoot(t *testing.T) {
	if os.PathSeparator != '/' || os.Geteuid() != 0 {
		t.Skip("root gives no files here")
	}
	file := filepath.Join(t.TempDir(), "tokens.json")
	add(t, file, "a", Read)
	for _, tt := range []struct {
		mode fs.FileMode
		user int
		ok   bool
	}{
		{0o440, 65532, true}, {0o640, 65532, true}, {0o400, 65532, true}, {0o660, 65532, false}, {0o444, 65532, false}, {0o450, 65532, false},
		{0o440, 0, false}, {0o600, 0, true},
	} {
		if err := os.Chmod(file, tt.mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := private(file, info, tt.user); (err == nil) != tt.ok {
			t.Errorf("mode %04o for the user %d: %v", tt.mode, tt.user, err)
		}
	}
}

// A token that is revoked by another name of its file is revoked: the link stays one, and the host that reads the file itself sees it.
func TestFileOfManyNames(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "tokens.json"), filepath.Join(dir, "there", "link.json")
	bearer := add(t, file, "a", Read)
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "tokens.json"), link); err != nil {
		t.Skip(err)
	}
	f, _ := openTokens(t, file)
	other := add(t, link, "b", Read)
	for _, b := range []string{bearer, other} {
		if _, err := f.Verify(t.Context(), b); err != nil {
			t.Errorf("a token that was added by the link, or stood there before: %v", err)
		}
	}
	if err := RevokeToken(link, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Verify(t.Context(), bearer); kindOf(err) != int(Invalid) {
		t.Errorf("the token that was revoked by the link: %v", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link has become %v, %v", info, err)
	}
	hard := filepath.Join(dir, "hard.json")
	if err := os.Link(file, hard); err != nil || os.PathSeparator != '/' {
		return // the number of names is not known on this system
	}
	if err := RevokeToken(hard, "b"); err == nil || !strings.Contains(err.Error(), "2 names") {
		t.Errorf("a revocation that a host would not see: %v", err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "lost")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := AddToken(filepath.Join(dir, "lost"), "c", Read, 0, ""); err == nil ||
		!strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("a link that leads nowhere: %v", err)
	}
}

func TestChangesAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens.json")
	var all sync.WaitGroup
	for n := range 10 {
		all.Go(func() {
			if _, _, err := AddToken(file, fmt.Sprint("t", n), Read, 0, ""); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := ListTokens(file)
	if err != nil || len(list) != 10 {
		t.Errorf("%d of 10 tokens were kept: %v", len(list), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"tokens.json", "tokens.json.lock"}, names); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(file); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

func TestBadEdits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	add(t, file, "a", Read)
	before, _ := os.ReadFile(file)
	for _, name := range []string{"a", "", "a b", "../a", "-a", strings.Repeat("a", 65), "ä", "a:b"} {
		if _, _, err := AddToken(file, name, Read, 0, ""); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	if _, _, err := AddToken(file, "b", 0, 0, ""); err == nil {
		t.Error("a token without rights was made")
	}
	if _, _, err := AddToken(file, "b", Read, -1, ""); err == nil {
		t.Error("a token that has ended was made")
	}
	if err := RevokeToken(file, "b"); err == nil {
		t.Error("a token that is not there was revoked")
	}
	none := filepath.Join(filepath.Dir(file), "none")
	if err := RevokeToken(filepath.Join(none, "tokens.json"), "a"); err == nil {
		t.Error("a token of no file was revoked")
	}
	if _, err := os.Lstat(none); err == nil {
		t.Error("a directory was made for a token to revoke")
	}
	if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
		t.Error("what was refused has changed the file")
	}
}

func FuzzTokens(f *testing.F) {
	for _, content := range brokenTokens {
		f.Add([]byte(content))
	}
	f.Add([]byte(`{"tokens":[{"name":"a","sha256":"` + sum +
		`","rights":["read","exec"],"created":"2026-01-01T00:00:00Z","expires":"2027-01-01T00:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, err := parseTokens(text)
		if err != nil {
			return
		}
		for _, token := range tokens {
			if token.Rights&^All != 0 || token.check() != nil {
				t.Errorf("%+v was taken", token)
			}
		}
		again, err := json.Marshal(tokenList{tokens})
		if err != nil {
			return // a year that RFC 3339 cannot write
		}
		back, err := parseTokens(again)
		if err != nil || !cmp.Equal(tokens, back) && len(tokens)+len(back) > 0 {
			t.Errorf("%s became %s: %v", text, again, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	file := filepath.Join(b.TempDir(), "tokens.json")
	var bearer string
	for n := range 20 {
		var err error
		if bearer, _, err = AddToken(file, fmt.Sprint("t", n), Read, 0, ""); err != nil {
			b.Fatal(err)
		}
	}
	f, err := OpenTokenFile(file, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	time.Sleep(settleTime)
	for b.Loop() {
		if _, err := f.Verify(b.Context(), bearer); err != nil {
			b.Fatal(err)
		}
	}
}

// Errors of a tokens file say what is wrong in it, and not what a decoder says.
func TestTokenFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		`garbage`:                               "it is not JSON at byte 1",
		`{"tokens": [`:                          "it is cut off",
		`[]`:                                    `{"tokens": […]} is expected`,
		`{"a": 1}`:                              `it has the member "a", which toolhost does not know`,
		`{"tokens": [{"name": 1}]}`:             "tokens.name is a number",
		`{"tokens": [{"expires": "tomorrow"}]}`: "tomorrow is not a time such as",
	} {
		_, err := parseTokens([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "json:") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
