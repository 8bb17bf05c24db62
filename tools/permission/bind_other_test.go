//go:build unix && !linux

package permission

// bindArg is used on Linux only, where strace watches programs in the sandbox.
const bindArg = "__bind"

func bindAndExec(string, []string) int { return 127 }
