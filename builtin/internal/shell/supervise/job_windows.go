package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/toolhost/toolhost/guard/sandbox"
)

// A job is a process in a job object, which ends all its processes when its last
// handle is closed: by Kill, or by the end of the server.
type job struct {
	cmd    *exec.Cmd
	handle windows.Handle
	once   sync.Once
	done   chan struct{} // closed when err is set
	err    error
}

// Start starts a process in a job object. It is started suspended, so
// that it is in the job before it can start others.
func Start(spec Spec) (Process, error) {
	if spec.Execs != nil {
		return nil, sandbox.ExecGateWorks(sandbox.None)
	}
	if len(spec.Files) != 3 {
		return nil, errors.New("supervise: a process on Windows gets three files")
	}
	handle, err := newJob()
	if err != nil {
		return nil, fmt.Errorf("no job object for the command: %w", err)
	}
	cmd := &exec.Cmd{
		Path: spec.Argv[0], Args: spec.Argv, Dir: spec.Dir, Env: spec.Env,
		Stdin: spec.Files[0], Stdout: spec.Files[1], Stderr: spec.Files[2],
		SysProcAttr: &syscall.SysProcAttr{
			CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP,
			HideWindow:    true,
		},
	}
	if err := cmd.Start(); err != nil {
		windows.CloseHandle(handle)
		return nil, err
	}
	if err := enter(handle, uint32(cmd.Process.Pid)); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		windows.CloseHandle(handle)
		return nil, fmt.Errorf("the command could not be put into its job object: %w", err)
	}
	j := &job{cmd: cmd, handle: handle, done: make(chan struct{})}
	go func() {
		defer close(j.done)
		j.err = cmd.Wait()
	}()
	return j, nil
}

// newJob creates a job object that kills its processes when it is closed.
func newJob() (windows.Handle, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		windows.CloseHandle(handle)
		return 0, err
	}
	return handle, nil
}

// enter assigns a suspended process to a job and resumes it.
func enter(job windows.Handle, pid uint32) error {
	proc, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(proc)
	if err := windows.AssignProcessToJobObject(job, proc); err != nil {
		return err
	}
	return resume(pid)
}

// resume resumes the threads of a process; a suspended one has a single thread.
func resume(pid uint32) error {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snap)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snap, &entry); err == nil; err = windows.Thread32Next(snap, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(thread)
		return errors.Join(err, windows.CloseHandle(thread))
	}
	return fmt.Errorf("the thread of process %d was not found: %w", pid, err)
}

// Done implements [Process].
func (j *job) Done() <-chan struct{} { return j.done }

// Wait implements [Process].
func (j *job) Wait() (Status, error) {
	<-j.done
	var exit *exec.ExitError
	if j.err != nil && !errors.As(j.err, &exit) {
		return Status{ExitCode: -1}, j.err
	}
	return Status{ExitCode: j.cmd.ProcessState.ExitCode()}, nil
}

// Signal implements [Process]: Windows knows no SIGTERM, so that the grace time
// ends with Kill.
func (j *job) Signal(os.Signal) error { return nil }

// Kill implements [Process]. How many processes it ended is not known.
func (j *job) Kill() (int, error) {
	var err error
	j.once.Do(func() {
		err = errors.Join(windows.TerminateJobObject(j.handle, 1), windows.CloseHandle(j.handle))
	})
	return 0, err
}
