package prose

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every Go file that the page about the architecture names with its folder exists.
func TestFilesOfTheArchitecture(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9_-]+/[a-z0-9/_-]*\\.go)`").FindAllSubmatch(page, -1)
	if len(named) < 50 {
		t.Fatalf("only %d files are named; the test sees nothing", len(named))
	}
	for _, m := range named {
		if _, err := os.Stat(filepath.Join(top, filepath.FromSlash(string(m[1])))); err != nil {
			t.Errorf("docs/architecture.md names %s: %v", m[1], err)
		}
	}
}
