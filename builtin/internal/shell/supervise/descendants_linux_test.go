package supervise

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// leaderless ends its main thread and says so from another one.
const leaderless = `
import ctypes, threading, time
def rest():
    main = "/proc/self/task/" + str(threading.main_thread().native_id) + "/stat"
    while open(main).read().rpartition(")")[2].split()[0] != "Z": time.sleep(.001)
    print("alone", flush=True)
    time.sleep(1000)
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall(%d, 0)
`

// TestHuntFindsTheLeaderless holds that a process in a session of its own is found whose
// main thread has ended, of which the kernel shows no environment.
func TestHuntFindsTheLeaderless(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	cmd := exec.Command(python, "-c", fmt.Sprintf(leaderless, unix.SYS_EXIT))
	call := rand.Text() // another run of this test on the machine has another one
	cmd.Env = []string{CallVariable + "=" + call}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		t.Skipf("python3 cannot end its main thread here: %q, %v", line, err)
	}
	if n, err := killDescendants(-1, call); n != 1 || err != nil {
		t.Errorf("hunt = %d, %v", n, err)
		cmd.Process.Kill()
	}
	cmd.Wait() // it was killed
}
