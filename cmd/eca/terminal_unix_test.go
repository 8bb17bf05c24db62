//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detachTerminal starts a program without a controlling terminal.
func detachTerminal(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
