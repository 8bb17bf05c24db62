package main

import "io/fs"

// private accepts all directories: those of a profile are its user's by their access lists.
func private(string, fs.FileInfo) error { return nil }
