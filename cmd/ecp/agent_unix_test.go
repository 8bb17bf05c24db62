//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }

// stopItself stops the process, so that it takes no other signal than that to die.
func stopItself() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
