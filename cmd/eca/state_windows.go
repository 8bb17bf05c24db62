package main

import "io/fs"

// private accepts all directories: access lists protect those of a user's profile.
func private(string, fs.FileInfo) error { return nil }
