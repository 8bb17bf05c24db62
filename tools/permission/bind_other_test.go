//go:build unix && !linux

package permission

// bindArg has a meaning only where strace watches what is bound: on Linux.
const bindArg = "__bind"

func bindAndExec(string, []string) int { return 127 }
