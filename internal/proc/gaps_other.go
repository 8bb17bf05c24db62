//go:build !linux

package proc

// Supervise does nothing on this system: children are in process groups or trees that are killed
// when their run ends, but children of a killed daemon survive.
func Supervise([]string) (code int, ok bool) { return 0, false }

func gaps(bool) []string {
	return []string{"on this system, commands that leave their process group or tree, or whose daemon is killed, keep running; eca ends all others"}
}
