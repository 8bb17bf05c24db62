package permission

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

var update = flag.Bool("update", false, "write the golden file of the fixture") //nolint:gochecknoglobals // a flag of the test

// fixtureLine is a command that agents ran, with what a person calls it.
type fixtureLine struct{ command, kind string }

// fixture reads commands.tsv for a workspace.
func fixture(t *testing.T, root string) []fixtureLine {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "commands.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, "{WS}", root)
	var out []fixtureLine
	for line := range strings.Lines(string(data)) {
		columns := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if strings.HasPrefix(line, "# ") || len(columns) != 3 || columns[0] == "command" {
			continue
		}
		out = append(out, fixtureLine{unescape.Replace(columns[0]), columns[1]})
	}
	return out
}

// fixtureFiles are files that the commands of the fixture name, so that their globs match.
func fixtureFiles(t *testing.T) string {
	t.Helper()
	return makeFiles(t, map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\tbare = false\n", ".git/objects/x": "", ".git/refs/x": "",
		"pyproject.toml": "", "package.json": "{}", "src/agents/solve/memory/a.py": "", "src/services/rag/x/y.py": "", "web/package.json": "{}", "config.yaml": "", "tests/a.py": "",
	})
}

// The table in docs/permissions.md has, for each value of toolCall.unasked, how many commands of
// each kind ask. No command that needs a network or destroys something runs as one that only reads.
func TestQuestionsOfTheFixture(t *testing.T) {
	root := fixtureFiles(t)
	lines := fixture(t, root)
	if len(lines) != 150 {
		t.Fatalf("the fixture has %d commands", len(lines))
	}
	var table bytes.Buffer
	asks := map[string]map[string]int{} // by kind and value
	fmt.Fprintln(&table, "unasked\tkind\tcommands\tsandbox.reads\tsandbox.workspace\task")
	for _, value := range []string{config.UnaskedOff, config.UnaskedReads, config.UnaskedWorkspace} {
		cfg := config.Load(config.Inputs{InitOptions: json.RawMessage(`{"toolCall": {"unasked": "` + value + `"}}`), Getenv: func(string) string { return "" }})
		p, _ := New(cfg.Config, Options{Contains: workspace.New(root).ContainsResolved, Memory: NewMemory(""), Sandbox: Sandbox{WorkspaceUnavailable: func() string { return "" }}})
		counts, total := map[string]map[string]int{}, map[string]int{}
		for _, l := range lines {
			v := judge(t, p, "code", root, l.command)
			outcome := v.Rule
			if v.Decision == tools.Ask {
				outcome = "ask"
			}
			if counts[l.kind] == nil {
				counts[l.kind] = map[string]int{}
			}
			if asks[l.kind] == nil {
				asks[l.kind] = map[string]int{}
			}
			asks[l.kind][""]++
			if outcome == "ask" {
				asks[l.kind][value]++
			}
			counts[l.kind][outcome]++
			total[outcome]++
			switch {
			case outcome == RuleReads && (l.kind == "network" || l.kind == "destructive"), outcome == tools.RuleWorkspace && l.kind == "network" && !strings.Contains(l.command, "scripts/") && !strings.Contains(l.command, "://localhost:"):
				t.Errorf("%s: %s: %q runs by %s", value, l.kind, l.command, outcome)
			case value == config.UnaskedReads && outcome == "ask" && l.kind == "read":
				t.Logf("a read that asks: %q: %s", l.command, v.Reason)
			case value == config.UnaskedWorkspace && outcome == "ask":
				t.Logf("asks: %s: %q: %s: %s", l.kind, l.command, v.Rule, v.Reason)
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(counts)) {
			c := counts[kind]
			fmt.Fprintf(&table, "%s\t%s\t%d\t%d\t%d\t%d\n", value, kind, c["ask"]+c[RuleReads]+c[tools.RuleWorkspace], c[RuleReads], c[tools.RuleWorkspace], c["ask"])
		}
		fmt.Fprintf(&table, "%s\tall\t%d\t%d\t%d\t%d\n", value, len(lines), total[RuleReads], total[tools.RuleWorkspace], total["ask"])
		if limit := len(lines) * 30 / 100; value == config.UnaskedWorkspace && total["ask"] > limit {
			t.Errorf("with workspace, %d of %d commands ask; at most %d should", total["ask"], len(lines), limit)
		}
	}
	golden := filepath.Join("testdata", "commands.golden")
	if *update {
		if err := os.WriteFile(golden, table.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(want, table.Bytes()) {
		t.Errorf("%v; the counts are (go test ./tools/permission -run Fixture -update):\n%s", err, table.String())
	}
	checkDocumentedTable(t, questionTable(asks))
}

// sessionFrequencies maps numbers of commands to their kinds, for 500 commands drawn at random from
// sessions of coding agents. Most of them only read.
func sessionFrequencies() map[int][]string {
	return map[int][]string{441: {"read"}, 38: {"build", "test", "write"}, 21: {"network", "destructive"}}
}

// questionTable says how many commands ask, as docs/permissions.md does. asks has the counts
// by kind and toolCall.unasked; under "" it has the commands of a kind, once for each value.
func questionTable(asks map[string]map[string]int) string {
	values := []string{config.UnaskedOff, config.UnaskedReads, config.UnaskedWorkspace}
	var out strings.Builder
	out.WriteString("| kind | commands | `off` | `reads` | `workspace` |\n|---|---|---|---|---|\n")
	row := func(name string, commands int, cell func(value string) string) {
		fmt.Fprintf(&out, "| %s | %d |", name, commands)
		for _, value := range values {
			fmt.Fprintf(&out, " %s |", cell(value))
		}
		out.WriteString("\n")
	}
	sum := func(value string, kinds ...string) (n int) {
		for _, kind := range kinds {
			n += asks[kind][value]
		}
		return n
	}
	share := func(value string, kinds ...string) float64 {
		return float64(sum(value, kinds...)) / float64(sum("", kinds...)/len(values))
	}
	kinds := []string{"read", "build", "test", "write", "network", "destructive"}
	for _, kind := range kinds {
		row(kind, sum("", kind)/len(values), func(value string) string { return fmt.Sprint(asks[kind][value]) })
	}
	row("all", sum("", kinds...)/len(values), func(value string) string {
		return fmt.Sprintf("%d (%.0f%%)", sum(value, kinds...), 100*share(value, kinds...))
	})
	row("weighted by frequency", 500, func(value string) string {
		asked := 0.0
		for n, kinds := range sessionFrequencies() {
			asked += float64(n) * share(value, kinds...)
		}
		return fmt.Sprintf("%.0f (%.0f%%)", asked, asked/5)
	})
	return out.String()
}

// checkDocumentedTable fails the test if docs/permissions.md does not contain the table. With
// -update, it replaces the table that begins with the same line.
func checkDocumentedTable(t *testing.T, table string) {
	t.Helper()
	path := filepath.FromSlash("../../docs/permissions.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(table, "\n")
	before, rest, found := strings.Cut(string(data), head+"\n")
	_, after, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("docs/permissions.md has no table %q", head)
	}
	text := before + table + "\n" + after
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if text != string(data) {
		t.Errorf("docs/permissions.md has other counts than these (go test ./tools/permission -run Fixture -update):\n%s", table)
	}
}
