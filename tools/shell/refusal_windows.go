package shell

// nonBlocking has no meaning here.
const nonBlocking = 0

// writableDir reports whether files can be created in a directory. There is no sandbox here.
func writableDir(string) bool { return false }
