package shell

import (
	"os"
	"testing"
	"time"
)

func runAsServer() {}

func TestSmoke(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, text := range []string{"echo hi; echo err >&2; cd /usr; false", "sleep 999 & echo x", "exit 3", "echo $PATH", "env | sort", `echo "$0 $# $LINENO $PPID"`, "true", "true", "kill -9 $$", "kill -9 $PPID; sleep 5", "cd /tmp; mkdir -p zz; cd zz; rmdir ../zz"} {
		time.Sleep(50 * time.Millisecond)
		res, err := r.Run(t.Context(), Command{Text: text, Dir: os.TempDir(), Timeout: 3 * time.Second})
		t.Logf("%q: %+v %v", text, res, err)
	}
}
