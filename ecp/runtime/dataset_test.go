package runtime

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDataset(t *testing.T) {
	type records = []map[string]string
	for name, c := range map[string]struct {
		file, text string
		want       records
		err        string
	}{
		"csv":            {"d.csv", "a, b \n1,\"two, and\nthree\"\n,\n", records{{"a": "1", "b": "two, and\nthree"}, {"a": "", "b": ""}}, ""},
		"bom":            {"d.CSV", "\xef\xbb\xbfa\r\n1\r\n", records{{"a": "1"}}, ""},
		"header only":    {"d.csv", "a,b\n", nil, "it has no records"},
		"nothing":        {"d.csv", "", nil, "it has no records"},
		"short line":     {"d.csv", "a,b\n1\n", nil, "line 2"},
		"quote":          {"d.csv", "a\n\"1\n", nil, "line 2"},
		"same name":      {"d.csv", "a,b, a\n1,2,3\n", nil, `two columns are called "a"`},
		"other encoding": {"d.csv", "a\ngr\xfcn\n", nil, "not UTF-8 text"},
		"jsonl":          {"d.jsonl", "{\"a\":\"x\",\"n\":1.50,\"o\":{\"k\":[true,null]}}\n\n{}\n", records{{"a": "x", "n": "1.50", "o": `{"k":[true,null]}`}, {}}, ""},
		"jsonl list":     {"d.jsonl", "{}\n[1]\n", nil, "record 2"},
		"jsonl null":     {"d.jsonl", "null\n", nil, "record 1: null is not an object"},
		"jsonl cut":      {"d.jsonl", "{\"a\":", nil, "record 1"},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readDataset(path)
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), c.file)) {
			t.Errorf("%s: %v, want %s", name, err, c.err)
		}
		var read records
		for _, r := range got {
			read = append(read, r.fields())
		}
		if diff := cmp.Diff(c.want, read); c.err == "" && (err != nil || diff != "") {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing.csv")} {
		if _, err := readDataset(path); err == nil {
			t.Errorf("%s is a dataset", path)
		}
	}
}

// A record's values are filled into all texts of a scenario.
func TestFill(t *testing.T) {
	m, problems := Parse([]byte(head+`scenarios:
  - name: "{{a}}"
    steps:
      - input: "{{a}} { {{ b }} }} {{"
        constraints:
          forbidden_tools: ["rm {{a}}"]
          scenario: {workspace: {copy: "fix/{{b}}", git: true}, config: {list: ["{{a}}", 1]}}
          checks:
            - {type: trajectory, tools: ["{{a}}"]}
            - {type: changes, only: ["{{b}}/**"], includes: []}
            - {type: command, run: "echo {{a}}"}
        graders:
          - {type: tool_usage, tool_name: "{{b}}", arguments: {x: {y: "{{a}}"}}}
          - {type: text_match, condition: regex, pattern: "^{{b}}$"}
`), "m")
	if len(problems) > 0 {
		t.Fatal(Problems(problems))
	}
	got, err := fill(m.Scenarios[0], map[string]string{"a": "A", "b": "B"})
	if err != nil {
		t.Fatal(err)
	}
	st := got.Steps[0]
	c := st.Constraints
	for _, pair := range [][2]any{
		{got.Name, "A"},
		{st.Input, "A { B }} {{"},
		{c.ForbiddenTools, []string{"rm A"}},
		{*got.Setup.Workspace, Fixture{"fix/B", true}},
		{got.Setup.Config, map[string]any{"list": []any{"A", int64(1)}}},
		{c.Checks[0].Tools, []string{"A"}},
		{c.Checks[1].Only, []string{"B/**"}},
		{c.Checks[1].Includes, []string{}},
		{c.Checks[0].Only, []string(nil)},
		{c.Checks[2].Run, "echo A"},
		{st.Graders[0].ToolName, "B"},
		{st.Graders[0].Arguments, map[string]any{"x": map[string]any{"y": "A"}}},
		{st.Graders[1].Pattern, "^B$"},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Error(diff)
		}
	}
	if again := m.Scenarios[0]; again.Name != "{{a}}" || again.Steps[0].Constraints.Checks[0].Tools[0] != "{{a}}" {
		t.Errorf("the scenario itself was changed: %+v", again)
	}
	for record, want := range map[string]string{"(": "pattern", "": "unknown {{b}}"} {
		values := map[string]string{"a": "A"}
		if record != "" {
			values["b"] = record
		}
		if _, err := fill(m.Scenarios[0], values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", record, err)
		}
	}
}

// Every dataset is refused, or its records have the columns.
func FuzzDataset(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n"), true)
	f.Add([]byte("\xef\xbb\xbf\"a\"\"\",b\r\n\"1\n\",2\n"), true)
	f.Add([]byte("{\"a\":1}\n{\"b\":null}{}"), false)
	f.Fuzz(func(t *testing.T, data []byte, isCSV bool) {
		records, err := parseDataset(data, isCSV)
		if err != nil {
			return
		}
		if len(records) == 0 {
			t.Fatal("neither records nor an error")
		}
		if !isCSV {
			return
		}
		header, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(data), "\uFEFF"))).Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if len(r.fields()) != len(header) {
				t.Fatalf("%q: %q", header, r)
			}
		}
	})
}
