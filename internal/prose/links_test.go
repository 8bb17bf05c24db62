package prose

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	target     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	titles     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Every link from one page to another leads to a file, and to a heading if it names one.
func TestLinks(t *testing.T) {
	links := 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name, err := filepath.Rel(top, path); err != nil || d.IsDir() && isSkipped(filepath.ToSlash(name)) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" || strings.Contains(filepath.ToSlash(path), "config/prompts/") {
			return nil
		}
		page := withoutCode(t, path)
		for _, m := range target.FindAllStringSubmatch(page, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "command:") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s leads to no file", path, m[1])
			} else if anchor != "" && filepath.Ext(to) == ".md" && !anchors(withoutCode(t, to))[anchor] {
				t.Errorf("%s: %s leads to no heading", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const fewest = 200
	if links < fewest {
		t.Errorf("only %d links are seen", links)
	}
}

// withoutCode reads a page and leaves its blocks of code out.
func withoutCode(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	code := false
	for _, line := range strings.Split(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		} else if !code {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range titles.FindAllStringSubmatch(page, -1) {
		text := target.ReplaceAllString(m[1], "]")
		out[strings.ReplaceAll(notAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")] = true
	}
	return out
}
