//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }

// stopItself stops the process, so that only SIGKILL has an effect.
func stopItself() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
