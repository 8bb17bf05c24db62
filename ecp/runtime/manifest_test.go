package runtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

const head = "manifest_version: v1\nname: n\ntarget: t\n"

// Problems have a position in the manifest.
func TestProblems(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "m.yaml:1:1: the manifest is empty; `ecp init` writes an example",
		"- a\n":                                 "m.yaml:1:1: a manifest is a mapping, not a list",
		"name: [\n":                             "m.yaml:1:",
		head:                                    "m.yaml:1:1: scenarios: the key is missing",
		head + "scenarios: no\n":                "m.yaml:4:12: scenarios: must be a list, not a boolean",
		head + "scenarios: []\nscenarios: []\n": "m.yaml:5:1: warning: scenarios: duplicate key",
		head + "scenarios: []\n":                "warning: scenarios: there are no scenarios",
		head + "scenarios: []\nextra: 1\n":      "m.yaml:5:1: extra: unknown key",
		head + "scenarios:\n  - name: s\n    steps:\n      - input: 2024-01-01\n":                                                  "m.yaml:7:16: scenarios.0.steps.0.input: must be a string, not a date; put it in quotes",
		head + "scenarios:\n  - name: s\n    steps:\n      - input: on\n":                                                          "not a boolean",
		head + "scenarios:\n  - name: s\n    steps: []\n":                                                                          `m.yaml:5:5: scenarios.0.steps: the scenario needs steps or a dataset`,
		head + "scenarios:\n  - name: s\n    steps: [{input: x, graders: [{type: text_match, condition: contains, value: ''}]}]\n": `m.yaml:6:81: warning: scenarios.0.steps.0.graders.0.value: every text contains an empty value, so this check always passes`,
		head + "scenarios:\n  - name: s\n    steps: [{input: x}]\n  - {name: s, steps: [{input: x}]}\n":                            `m.yaml:7:12: warning: scenarios.1.name: "s" is also the name of scenarios.0`,
		head + "scenarios: [{name: s, steps: [{input: a, constraints: {bogus: 1}}]}]\n":                                            "warning: scenarios.0.steps.0.constraints.bogus: the unknown constraint has no effect",
		head + "scenarios: [{name: s, steps: [{input: a, constraints: {forbidden_tool: 1}}]}]\n":                                   "m.yaml:4:56: scenarios.0.steps.0.constraints.forbidden_tool: unknown constraint; did you mean forbidden_tools?",
		head + "scenarios: [{name: s, steps: [{input: a, constraints: {max_cost: 1}}]}]\n":                                         "m.yaml:4:56: scenarios.0.steps.0.constraints.max_cost: unknown constraint; did you mean max_cost_usd?",
		head + "scenarios: [{name: s, steps: [{input: a, constraints: {timeout: 1}}]}]\n":                                          "m.yaml:4:56: scenarios.0.steps.0.constraints.timeout: unknown constraint; did you mean timeout_s?",
		head + "scenarios: [{name: s, steps: [{input: a, constraints: {Max-Tokens: 1}}]}]\n":                                       "m.yaml:4:56: scenarios.0.steps.0.constraints.Max-Tokens: unknown constraint; did you mean max_tokens?",
		head + "scenarios: [{name: s, steps: [{input: a}, {input: b, constraints: {scenario: {}}}]}]\n":                            "only the first step",
		head + "scenarios: *nothing\n":                     "has no anchor",
		head + "scenarios: []\n---\nmore: 1\n":             "m.yaml:6:5: a manifest is one document",
		head + "scenarios: !!python/object:os.system []\n": "is not known",
	} {
		_, problems := Parse([]byte(text), "m.yaml")
		found := slices.ContainsFunc(problems, func(p Problem) bool { return strings.Contains(p.Error(), want) })
		if !found {
			t.Errorf("%q: %v, want %s", text, Problems(problems), want)
		}
	}
}

// A manifest can use all features of YAML.
func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"bom":   "\xef\xbb\xbf" + head + "scenarios: [{name: s, steps: [{input: \"# no comment\", graders: [{type: tool_usage, arguments: {a: 0x10, b: 1.5, c: null, d: yes, e: [x]}}]}]}]\n",
		"json":  `{"manifest_version":"v1","name":"n","target":"t","scenarios":[{"name":"s","steps":[{"input":"# no comment","graders":[{"type":"tool_usage","arguments":{"a":16,"b":1.5,"c":null,"d":true,"e":["x"]}}]}]}]}`,
		"alias": head + "scenarios:\n  - &one\n    name: s\n    steps:\n      - input: '# no comment'\n        graders:\n          - type: tool_usage\n            arguments: {a: 16, b: 1.5, c: ~, d: on, e: [x]}\n",
		"crlf":  strings.ReplaceAll(head+"scenarios:\n  - name: s\n    steps:\n      - input: '# no comment'\n        graders:\n          - type: tool_usage\n            arguments: {a: 16, b: 1.5, c: null, d: true, e: [x]}\n", "\n", "\r\n"),
	} {
		m, problems := Parse([]byte(text), "m.yaml")
		if len(problems) > 0 || len(m.Scenarios) != 1 {
			t.Errorf("%s: %v", name, Problems(problems))
			continue
		}
		st := m.Scenarios[0].Steps[0]
		args := st.Graders[0].Arguments
		list, _ := args["e"].([]any)
		if st.Input != "# no comment" || args["a"] != int64(16) || args["b"] != 1.5 || args["c"] != nil || args["d"] != true || len(list) != 1 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// Nested aliases are bounded.
func TestNestedAliases(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x]\n")
	for i := range 40 {
		fmt.Fprintf(&b, "a%d: &a%[1]d [%s]\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	if _, problems := Parse([]byte(b.String()), "m"); len(problems) == 0 || !strings.Contains(Problems(problems).Error(), "when aliases are followed") {
		t.Errorf("%v", Problems(problems))
	}
}

// Any manifest is read or refused.
func FuzzParse(f *testing.F) {
	f.Add([]byte(head + "scenarios:\n  - name: s\n    steps:\n      - {input: x, graders: [{type: text_match, condition: regex, pattern: '('}]}\n"))
	f.Add([]byte("a: &a [*a]\n<<: {b: 1}\n"))
	f.Add([]byte("{\"a\": [1, 2.5, .inf, ~, !!str 3, |\n x]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, problems := Parse(data, "m")
		if m == nil {
			t.Fatal("no manifest")
		}
		for i := range problems {
			if problems[i].Error() == "" {
				t.Fatal("a problem that says nothing")
			}
		}
	})
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	p := lookup{exists: func(string) bool { return false }, inPath: func(s string) bool { return s == "python3" }, dir: dir}
	for target, want := range map[string]string{
		"python agent.py":         "python3 agent.py", // the file does not exist beside the manifest
		"python3 -m agent":        "python3 -m agent",
		"node 'my agent.js'":      "node 'my agent.js'",
		"A=1 exec ./run --x=a.py": "A=1 exec ./run --x=a.py",
	} {
		if got, _ := p.resolve(target); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}

// Each line of output is handled completely, or not at all.
func FuzzNoise(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":true}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"7","error":null}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		c := &stdio{}
		r, mine, err := c.parseAnswer(line, []byte("7"))
		if mine && err == nil && (r.Result == nil) == (r.Err == nil) {
			t.Fatalf("%s: %+v", line, r)
		}
		_ = c.strayOutput.list()
	})
}
