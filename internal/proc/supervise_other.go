//go:build !linux

package proc

import "os/exec"

// Supervise does nothing on this system: children live in process groups or trees that
// are killed when their run ends, but a killed daemon leaves them behind.
func Supervise([]string) (code int, ok bool) { return 0, false }

// Gaps says what of the promises about children does not hold here.
func Gaps(string) []string {
	return []string{"on this system commands that leave their process group or tree, or whose daemon is killed, go on; eca ends the others"}
}

type supervision struct{ pid int }

func supervised(cmd *exec.Cmd, _ Spec) (*supervision, error) { return nil, cmd.Start() }

func (*supervision) exitCode() int { return -1 }
func (*supervision) kill()         {}
func (*supervision) close()        {}
