package main

import "golang.org/x/sys/windows"

// discardInput discards input that was typed on a console and not read.
func discardInput(fd uintptr) error {
	return windows.FlushConsoleInputBuffer(windows.Handle(fd))
}
