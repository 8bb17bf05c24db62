//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }
