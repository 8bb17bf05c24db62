package watch

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// A Tree can watch the files of openTmpfile and openUnlinked, and neither leaves a file behind.
func TestUnnamedFiles(t *testing.T) {
	t.Setenv("TMPDIR", tempDir(t))
	for name, open := range map[string]func() (*os.File, error){"unnamed": openTmpfile, "unlinked": openUnlinked} {
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
			collectHints(t, tree, "a write", func() error {
				_, err := file.WriteAt([]byte{0}, 0)
				return err
			}, func(h Hints) bool { return slices.Contains(h.Written, path) })
		})
	}
}
