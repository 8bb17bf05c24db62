package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Trust covers the files that run, but not those that they work on: a server's database changes all
// the time.
func TestTrustCoversProgramsNotData(t *testing.T) {
	needs.POSIX(t)
	root := t.TempDir()
	for name, text := range map[string]string{
		"data.db": "SQLite", "state.json": "{}", ".env": "A=1", "conf.toml": "", "in.csv": "", "notes.md": "", "src/main.ts": "", "preload.js": "",
		"server.py": "", "server.js": "", "tool.rb": "", "run.sh": "", "lib.so": "\x7fELF", "app.jar": "PK", "pkg/mod.py": "", "pkg/__main__.py": "",
		"task.lua": "", "compose.yml": "", "rules.mk": "", "main.ts": "", "dir/index.js": "", "query.awk": "",
	} {
		write(t, filepath.Join(root, name), text)
	}
	for name, text := range map[string]string{"bin/server": "\x7fELF", "bin/script": "#!/bin/sh\n", "shared.db": "SQLite"} {
		write(t, filepath.Join(root, name), text)
		if err := os.Chmod(filepath.Join(root, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"./bin/server --db data.db":                           "bin/server",
		"bin/server data.db state.json":                       "bin/server",
		"/usr/bin/sqlite-mcp data.db":                         "",
		"mcp-sqlite --db-path shared.db":                      "",
		"installed src/main.ts conf.toml":                     "",
		"installed --exec bin/script --log in.csv":            "bin/script",
		"installed --plugin=lib.so data.db":                   "lib.so",
		"python3 server.py --db data.db":                      "server.py",
		"python3.12 -u -X dev server.py data.db":              "server.py",
		"python -m pkg.mod data.db":                           "pkg/mod.py",
		"python -m pkg data.db":                               "pkg/__main__.py",
		"python -c pass data.db":                              "",
		"node --env-file .env server.js state.json":           "server.js",
		"node --require ./preload.js server.js":               "preload.js server.js",
		"node --import=./preload.js server":                   "preload.js server.js",
		"node dir data.db":                                    "dir/index.js",
		"npx -y some-package data.db":                         "",
		"npx -y tsx main.ts --db data.db":                     "main.ts",
		"deno run -A --config conf.toml main.ts data.db":      "main.ts",
		"bun run main.ts data.db":                             "main.ts",
		"uv run --env-file .env server.py data.db":            "server.py",
		"uv run --with mcp python server.py data.db":          "server.py",
		"uvx mcp-server-sqlite --db-path data.db":             "",
		"ruby -I lib -r ./preload.js tool.rb in.csv":          "preload.js tool.rb",
		"java -jar app.jar state.json":                        "app.jar",
		"java -cp app.jar:lib.so Main data.db":                "app.jar lib.so",
		"lua task.lua data.db":                                "task.lua",
		"env A=1 -u B DB=data.db ./run.sh data.db":            "run.sh",
		"timeout -k 5 30s ./run.sh notes.md":                  "run.sh",
		"sudo -u me bash -e run.sh data.db":                   "run.sh",
		"docker compose -f compose.yml run --env-file .env x": "compose.yml",
		"docker run --env-file .env image data.db":            "",
		"make -f rules.mk data.db":                            "rules.mk",
		"bb -cp app.jar server.py data.db":                    "app.jar server.py",
		"julia --project . task.lua data.db":                  "task.lua",
		"awk -f query.awk in.csv":                             "query.awk",
	} {
		words := strings.Fields(line)
		var args []any
		for _, w := range words[1:] {
			args = append(args, w)
		}
		for form, value := range map[string]any{
			"a server":  map[string]any{"command": words[0], "args": args, "env": map[string]any{"DB": "data.db", "CONFIG": "state.json"}},
			"a command": map[string]any{"shell": line},
			"a shell's": map[string]any{"command": "bash", "args": []any{"-lc", line + " > data.db; cat notes.md"}},
		} {
			var got []string
			for _, path := range namedFiles(root, filepath.Join(root, ".eca"), value) {
				rel, err := filepath.Rel(root, path)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, filepath.ToSlash(rel))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s, as %s: %q, not %q", line, form, got, want)
			}
		}
	}
	for _, c := range []struct{ variable, value, want string }{
		{"NODE_OPTIONS", "--require ./preload.js", "preload.js"},
		{"BASH_ENV", "run.sh", "run.sh"},
		{"LD_PRELOAD", "./lib.so", "lib.so"},
		{"GIT_SSH_COMMAND", "./run.sh -x", "run.sh"},
		{"WRAPPED", "bin/script --db data.db", "bin/script"},
		{"DATABASE", "data.db", ""},
	} {
		got := namedFiles(root, root, map[string]any{"command": "x", "args": []any{}, "env": map[string]any{c.variable: c.value}})
		if want := filepath.Join(root, filepath.FromSlash(c.want)); c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{want}) {
			t.Errorf("%s=%s: %q", c.variable, c.value, got)
		}
	}
	// Without a program, the first file among the arguments counts as the script.
	for _, value := range []any{map[string]any{"args": []any{"-u", "server.py", "data.db"}}, []any{"server.py", "data.db"}} {
		if got := namedFiles(root, root, value); len(got) != 1 || filepath.Base(got[0]) != "server.py" {
			t.Errorf("%v: %q", value, got)
		}
	}
	// Included content is part of the configuration.
	for _, text := range []string{"${file:state.json}", "${cmd:cat state.json}", "run ${cmd:cat 'state.json'}"} {
		if got := namedFiles(root, root, map[string]any{"command": text, "args": []any{text}}); len(got) != 1 {
			t.Errorf("%s: %q", text, got)
		}
	}
}
