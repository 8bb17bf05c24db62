package watch

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// Both ways to get a file without a name lead to one that can be watched, and none is left.
func TestNameless(t *testing.T) {
	t.Setenv("TMPDIR", tempDir(t))
	for name, open := range map[string]func() (*os.File, error){"unnamed": unnamed, "unlinked": unlinked} {
		t.Run(name, func(t *testing.T) {
			file, err := open()
			if name == "unnamed" && err != nil {
				t.Skipf("NOT TESTED: the file system of the temporary folder makes no files without names: %v; set TMPDIR", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
				t.Errorf("%v, %v are there", left, err)
			}
			path := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
			tree := newTree(t, 10, path)
			told(t, tree, "a write", func() error {
				_, err := file.WriteAt([]byte{0}, 0)
				return err
			}, func(h Hints) bool { return slices.Contains(h.Written, path) })
		})
	}
}
