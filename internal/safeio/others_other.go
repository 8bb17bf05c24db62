//go:build !unix

package safeio

// CheckOthers returns nil: permissions of other systems are not examined.
func CheckOthers(string) error { return nil }

// OthersRead returns false: permissions of other systems are not examined.
func OthersRead(string) bool { return false }
