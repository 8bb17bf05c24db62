package permission

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// bindArg, as first argument, has this test's program bound to reading and become another one.
const bindArg = "__bind"

func bindAndExec(temp string, argv []string) int {
	runtime.LockOSThread()
	path, err := exec.LookPath(argv[0])
	if err == nil {
		err = sandbox.Apply(sandbox.Policy{Level: sandbox.ReadOnly, Temp: temp})
	}
	if err == nil {
		err = unix.Exec(path, argv, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	return 127
}
