package main

import "io/fs"

// private accepts every directory: access control lists protect the profile of a user.
func private(string, fs.FileInfo) error { return nil }
