package lsp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// realEdits is how many type errors are made in each language.
const realEdits = 100

// A real server names, in the result of the edit itself, at least 95 of 100 type errors. Half of the
// edits break another file than the edited one. The times are logged: docs/performance.md has them.
func TestRealServers(t *testing.T) {
	needs.Long(t)
	typescript := map[string]string{
		"tsconfig.json": `{"compilerOptions": {"strict": true, "noEmit": true, "types": []}, "include": ["*.ts"]}`,
		"a.ts":          tsFile(0, ""), "use.ts": "import { f } from './a'\nexport const n: number = f(1)\n",
		"old.ts": "export const old: number = 'it was there'\n",
	}
	for _, c := range []struct {
		language, program string
		dirs              []string // with the program, before those of PATH
		get               string
		files             map[string]string
		// edited returns the file of an edit, its text after the edit and the message of the error.
		edited func(i int) (name, text, message string)
	}{
		{
			"go", "gopls",
			[]string{filepath.Dir(os.Getenv("ECA_GOPLS"))},
			"go install golang.org/x/tools/gopls@v0.21.1, and ECA_GOPLS, or PATH",
			map[string]string{
				"go.mod": "module x\n\ngo 1.26\n", "a.go": goFile(0, ""), "use.go": "package x\n\nvar _ int = F(1)\n",
				"old.go": "package x\n\nvar old int = \"it was there\"\n",
			},
			func(i int) (string, string, string) {
				if i%2 == 0 {
					return "a.go", goFile(i, fmt.Sprintf("var e%d int = \"x\"\n", i)), "as int value in variable declaration"
				}
				return "a.go", strings.Replace(goFile(i, ""), "F(n int)", "F(n, m int)", 1), "not enough arguments in call to F"
			},
		},
		{
			"typescript", "typescript-language-server",
			[]string{filepath.Join(os.Getenv("ECA_NODE_TOOLS"), "node_modules", ".bin")},
			"npm, as in .ci/node, and ECA_NODE_TOOLS", typescript,
			func(i int) (string, string, string) {
				if i%2 == 0 {
					return "a.ts", tsFile(i, fmt.Sprintf("export const e%d: number = 'x'\n", i)), "Type 'string' is not assignable to type 'number'."
				}
				return "use.ts", fmt.Sprintf("import { f } from './a'\nexport const n: number = f(1, %d)\n", i), "Expected 1 arguments, but got 2."
			},
		},
		{
			"typescript 7", "tsc",
			[]string{filepath.Join(os.Getenv("ECA_TYPESCRIPT"), "node_modules", ".bin")},
			"npm install --prefix DIR typescript@7.0.2, and ECA_TYPESCRIPT=DIR", typescript,
			func(i int) (string, string, string) {
				if i%2 == 0 {
					return "a.ts", tsFile(i, fmt.Sprintf("export const e%d: number = 'x'\n", i)), "Type 'string' is not assignable to type 'number'."
				}
				return "a.ts", strings.Replace(tsFile(i, ""), "f(n: number)", "f(n: number, m: number)", 1), "Expected 2 arguments, but got 1."
			},
		},
	} {
		t.Run(c.language, func(t *testing.T) {
			path := strings.Join(append(c.dirs, os.Getenv("PATH")), string(os.PathListSeparator))
			r := newRig(t, "", c.files)
			r.servers.opts.Getenv = func(name string) string {
				if name == "PATH" {
					return path
				}
				return os.Getenv(name)
			}
			r.settings.Config = config.LSP{}
			r.settings.Wait, r.settings.StartWait = 3*time.Second, 2*time.Minute
			name, _, _ := c.edited(0)
			if f, _ := r.use().installedFor(filepath.Join(r.dir, name)); f.program.name != c.program {
				t.Skipf("NOT TESTED: %s is not installed; get it with: %s", c.program, c.get)
			}
			for name, text := range c.files { // the server becomes warm
				r.write(name, text)
			}
			named := 0
			var broken, mended []time.Duration
			for i := range realEdits {
				name, text, message := c.edited(i)
				start := time.Now()
				got := r.write(name, text)
				broken = append(broken, time.Since(start))
				if strings.Contains(got, message) && !strings.Contains(got, "it was there") {
					named++
				} else {
					t.Logf("edit %d: %q", i, got)
				}
				start = time.Now()
				if got := r.write(name, c.files[name]); got != "" {
					t.Errorf("mending edit %d: %q", i, got)
				}
				mended = append(mended, time.Since(start))
			}
			t.Logf("%s: %d of %d named; added to an edit with an error: p50 %s, p95 %s; to one without: p50 %s, p95 %s",
				c.program, named, realEdits, percentile(broken, 50), percentile(broken, 95), percentile(mended, 50), percentile(mended, 95))
			if named < realEdits*95/100 {
				t.Errorf("%d of %d errors were named", named, realEdits)
			}
		})
	}
}

func goFile(i int, more string) string {
	return fmt.Sprintf("package x\n\n// F is number %d.\nfunc F(n int) int { return n }\n\n%s", i, more)
}

func tsFile(i int, more string) string {
	return fmt.Sprintf("// number %d\nexport function f(n: number): number { return n }\n\n%s", i, more)
}

func percentile(list []time.Duration, p int) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)*p/100].Round(time.Millisecond)
}
