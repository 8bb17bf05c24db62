//go:build darwin || windows

package keychain

// noSession is for systems whose keychain may be absent.
func noSession(func(string) string) bool { return false }
