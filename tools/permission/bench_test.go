package permission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
)

// usualCommands are commands as models write them: mostly looking around, building and testing,
// some of them long.
func usualCommands() []string {
	return []string{
		"ls -la", "git status", "git diff HEAD~1 -- src/main.go", "git log --oneline -10", "cat package.json", "npm test", "npm run build", "go test ./...", "go test ./... 2>&1 | tail -20", "go build ./... && go vet ./...",
		"grep -rn 'func main' --include='*.go' .", "grep -rn foo src | head -20", "find . -name '*.ts' -not -path './node_modules/*' | head -50", "rg -n 'TODO|FIXME' src", "sed -n '1,80p' src/a.go", "wc -l src/*.go", "head -50 src/a.go && tail -20 src/a.go",
		"cd src && npm test -- --watch=false", "cd src; ls; cat a.go", "make", "make test 2>&1 | grep -E '(FAIL|ok)'", "python3 -m pytest -x tests/test_a.py -k 'not slow'", "pip install -r requirements.txt", "docker ps", "curl -s http://localhost:8080/health | jq .",
		"mkdir -p build && cp src/a.go build/", "rm -rf build", "git add -A && git commit -m 'Fix the thing'", "git stash list", "git show --stat HEAD", "cargo build --release", "echo \"$PATH\"", "which node && node --version", "NODE_ENV=test npm run test:unit",
		"for f in src/*.go; do echo $f; done", "if [ -f go.mod ]; then go list ./...; fi", "cat > /tmp/x.txt <<'EOF'\nhello\nEOF", "timeout 60 npm test", "find . -name '*.go' -exec wc -l {} +", "ls -R | grep -i test | sort | uniq -c | sort -rn | head",
	}
}

// BenchmarkJudge parses and judges usual commands, with rules of a user, for an agent that may change
// things and for one that may not. The floor is parsing the same commands.
func BenchmarkJudge(b *testing.B) {
	dir := makeFiles(b, map[string]string{".git/config": "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n", "src/a.go": "", "package.json": ""})
	p := policyFor(b, `{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["npm (test|run).*", "go (test|vet|build|list).*", "git (status|diff|log|show).*", "make( test)?"]}}},
		"deny": {"eca__shell_command": {"argsMatchers": {"command": ["rm -rf /.*", "sudo .*"]}}}}}}`, dir)
	var calls []tools.Call
	for _, agent := range []string{"code", "plan"} {
		for _, command := range usualCommands() {
			args, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				b.Fatal(err)
			}
			calls = append(calls, tools.Call{Agent: agent, Arguments: args, Roots: []string{dir}})
		}
	}
	commands := usualCommands()
	var parser cmdline.Parser // as the tool has one
	var judged, parsed []float64
	for b.Loop() {
		for i, call := range calls {
			command := commands[i%len(commands)]
			began := time.Now()
			plan := tools.Plan{Paths: []string{dir}, Command: &tools.Command{Text: command, Dir: dir, Program: parser.Parse(command)}}
			p.Judge(call, spec("eca__shell_command"), plan)
			judged = append(judged, float64(time.Since(began))/1e3)
			began = time.Now()
			if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), ""); err != nil {
				b.Fatal(err)
			}
			parsed = append(parsed, float64(time.Since(began))/1e3)
		}
	}
	at := func(times []float64, part float64) float64 {
		slices.Sort(times)
		return times[int(part*float64(len(times)-1))]
	}
	b.ReportMetric(0, "ns/op") // of all together says nothing
	b.ReportMetric(at(judged, .5), "p50-us")
	b.ReportMetric(at(judged, .99), "p99-us")
	b.ReportMetric(at(parsed, .5), "floor-p50-us")
}
