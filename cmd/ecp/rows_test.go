package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The rows of a dataset are steps of one conversation, regardless of the current directory.
func TestRows(t *testing.T) {
	isolateEnvironment(t)
	for _, c := range []struct {
		kind, text, keys string
		inputs           []string
		checks           int
		say              string // of the error, if the dataset cannot be used
	}{
		{kind: "csv", text: "input,output\na,a 1\nb,b 2\n", inputs: []string{"a", "b"}, checks: 2},
		{kind: "csv", text: "\ufeffinput,output\r\n\"a, \"\"b\"\"\r\nc\",x\r\rb,\rc\r\n", inputs: []string{"a, \"b\"\nc", "b", "c"}, checks: 1},
		{kind: "csv", text: "input,input\nold,new,more\n", inputs: []string{"new"}},
		{kind: "csv", text: "q,a\nx,x 1\n", keys: ", input_column: q, output_column: a", inputs: []string{"x"}, checks: 1},
		{kind: "csv", text: "question,output\na,b\n", say: `no column "input"`},
		{kind: "csv", text: "input;output\na;b\n", say: `no column "input"`},
		{kind: "csv", text: "input\na\n", keys: ", output_column: answer", say: `no column "answer"`},
		{kind: "csv", text: "output,input\na\n", say: "row 1 has no cell"},
		{kind: "csv", text: "input,output\n", say: "no rows"},
		{kind: "csv", text: "", say: "no rows"},
		{kind: "csv", text: "input\n" + strings.Repeat("x", 131073) + "\n", say: "131072"},
		{kind: "csv", text: "input\n\xff\n", say: "UTF-8"},
		{kind: "jsonl", text: "{\"input\":\"a\",\"output\":\"a 1\"}\n\n{\"input\":\"b\",\"output\":null}\n{\"input\":\"c\",\"output\":\"\"}\n{\"input\":\"old\",\"input\":\"d\"}", inputs: []string{"a", "b", "c", "d"}, checks: 1},
		{kind: "jsonl", text: "\ufeff{\"a.b\":\"x\"}", keys: ", input_column: a.b", inputs: []string{"x"}},
		{kind: "jsonl", text: "[1]\n", say: "line 1 is not a JSON object"},
		{kind: "jsonl", text: "{\"input\":\"a\"}\n{} trailing\n", say: "line 2 is not a JSON object"},
		{kind: "jsonl", text: "{\"question\":\"a\"}\n", say: `"input" must be a string`},
		{kind: "jsonl", text: "{\"input\":1}\n", say: `"input" must be a string`},
		{kind: "jsonl", text: "{\"input\":\"a\",\"output\":0}\n", say: `"output" must be a string`},
		{kind: "jsonl", text: "{\"input\":\"a\",\"output\":false}\n", say: `"output" must be a string`},
		{kind: "jsonl", text: "", say: "no rows"},
	} {
		m := manifest(t, agentTarget(t, "ok"), "  - {name: rows, dataset: {type: "+c.kind+", source: data/rows"+c.keys+"}}\n"+scenario("b", has("x"), "x"))
		write(t, filepath.Join(filepath.Dir(m), "data", "rows"), c.text)
		t.Chdir(t.TempDir())
		if c.say != "" {
			for _, command := range []string{"validate", "run"} {
				if r := invoke(t, command, m); r.code != exitError || !strings.Contains(r.err, c.say) || !strings.Contains(r.err, "scenarios.0.dataset.source") {
					t.Errorf("%s %.60q: exit %d: %s", command, c.text, r.code, r.err)
				}
			}
			continue
		}
		if r := invoke(t, "validate", m); r.code != 0 || !strings.Contains(r.out, "Graders: "+string(rune('1'+c.checks))) {
			t.Errorf("%.60q: exit %d: %s%s", c.text, r.code, r.out, r.err)
		}
		_, r := evaluateManifest(t, m)
		var inputs []string
		checks := 0
		for _, st := range r.Scenarios[0].Steps {
			inputs, checks = append(inputs, st.Input), checks+len(st.Checks)
		}
		if !slices.Equal(inputs, c.inputs) || checks != c.checks || !strings.HasSuffix(*r.Scenarios[0].Steps[len(inputs)-1].Output, " "+string(rune('0'+len(inputs)))) {
			t.Errorf("%.60q: %q, %d checks", c.text, inputs, checks)
		}
	}
	for scenarios, say := range map[string]string{
		"  - {name: a, dataset: {type: csv, source: missing.csv}}\n":                      "missing.csv",
		"  - {name: a, dataset: {type: csv, source: .}}\n":                                "not a regular file",
		"  - {name: a, stpes: [], dataset: {type: csv, source: x}}\n":                     "did you mean steps?",
		"  - {name: a, steps: [{input: x}], dataset: {type: csv, source: missing.csv}}\n": "the dataset is not read",
		"  - {name: a, dataset: {type: csv, source: x, input_colum: y}}\n":                "did you mean input_column?",
	} {
		r := invoke(t, "validate", manifest(t, "x", scenarios))
		if warned := say == "the dataset is not read"; (r.code == 0) != warned || !strings.Contains(r.err, say) {
			t.Errorf("%s: exit %d: %s", scenarios, r.code, r.err)
		}
	}
}

// The reference reads the same rows, and gives the same verdicts for them.
func TestReferenceRows(t *testing.T) { withReferenceRuntimes(t, testReferenceRows) }

func testReferenceRows(t *testing.T, runtime []string) {
	isolateEnvironment(t)
	python := referencePython(t, runtime)
	if !speaks10(t, python) {
		t.Skip("NOT TESTED with the reference 0.4, which has no datasets; requirements-0.10.txt has the one that does")
	}
	agent, err := filepath.Abs("testdata/sdk-agent.py")
	if err != nil {
		t.Fatal(err)
	}
	target := python + " " + agent + " class"
	m := manifest(t, target, "  - {name: csv, dataset: {type: csv, source: rows.csv}}\n  - {name: jsonl, dataset: {type: jsonl, source: rows.jsonl, output_column: a}}\n")
	text, err := os.ReadFile(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, m, "require_capabilities: true\n"+string(text))
	write(t, filepath.Join(filepath.Dir(m), "rows.csv"), "input,output\r\nx,1: x \u2013 \u65e5\u672c \U0001f600\r\n\"y, z\",no\r\nw\r\n")
	write(t, filepath.Join(filepath.Dir(m), "rows.jsonl"), "{\"input\":\"x\",\"a\":\"no\"}\n\n{\"input\":\"y\"}\n")
	sameVerdicts(t, runtime, m, target)
}
