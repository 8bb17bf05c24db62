package report

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp"
)

// The 95th percentile is the nearest rank.
func TestLatency(t *testing.T) {
	var took []float64
	for i := range 100 {
		took = append(took, float64(100-i))
	}
	if diff := cmp.Diff(Latency{Total: 5050, Mean: 50.5, Max: 100, P95: 95}, latency(took)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Latency{Total: 3, Mean: 3, Max: 3, P95: 3}, latency([]float64{3})); diff != "" {
		t.Error(diff)
	}
	if (latency(nil) != Latency{}) {
		t.Error("no step has a latency")
	}
}

// If a step reports no total, its input and output count.
func TestUsageSum(t *testing.T) {
	var sum ecp.Usage
	for _, text := range []string{`{}`, `{"total_tokens":5}`, `{"input_tokens":3,"output_tokens":4}`, `{"x":1}`, `{"input_tokens":null,"total_tokens":1}`} {
		var step ecp.Usage
		if err := json.Unmarshal([]byte(text), &step); err != nil {
			t.Fatal(err)
		}
		sum = addUsage(sum, step)
	}
	if line, err := ecp.Encode(sum); err != nil || string(line) != `{"input_tokens":3,"output_tokens":4,"total_tokens":13}` {
		t.Errorf("%s, %v", line, err)
	}
	if addUsage(nil, ecp.Usage{"x": json.RawMessage("1")}) != nil {
		t.Error("nothing was reported")
	}
}

// Reports of version 1, and those of the reference, can be read, as baselines, for trends and for
// --rerun-failed.
func TestOlderReports(t *testing.T) {
	for text, want := range map[string][]any{
		`{"schema_version":1,"manifest":"m","passed":1,"total":3,"failed":2,"scenarios":[
			{"name":"a","id":"0","status":"passed","steps":[{"input":"x","status":"paused","verdict":"passed","checks":[{"type":"t","passed":true}]}]},
			{"name":"b","id":"1","status":"failed","steps":[{"input":"x","status":"done","verdict":"failed","checks":[{"type":"t"}]}],"attempts":[{"status":"failed","steps":[{"status":"done","checks":[{"type":"t"}]}]}]},
			{"name":"c","id":"2","status":"error","steps":[{"input":"x","status":"error","error":{"kind":"judge","message":"why"},"checks":[{"type":"llm_judge","error":"why"}]}]}]}`: {
			[]string{Passed, Failed, Error}, []string{"paused", "done", "error"}, 1, 2,
		},
		`{"manifest":"m","passed":1,"total":3,"failed":2,"exit_reason":"timeout","scenarios":[
			{"name":"a","status":"ok","exit_reason":"ok","steps":[{"input":"x","status":"ok","error":null,"checks":[{"type":"t","passed":true}]}]},
			{"name":"b","status":"ok","exit_reason":"ok","steps":[{"input":"x","status":"ok","error":null,"checks":[{"type":"t"}]}]},
			{"name":"c","status":"failed","exit_reason":"timeout","steps":[{"input":"x","status":"failed","error":"timeout: x","checks":[{"type":"execution","field":"agent"}]}]}]}`: {
			[]string{Passed, Failed, Error}, []string{"", "", ""}, 1, 3,
		},
	} {
		r, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var verdicts, said []string
		for _, s := range r.Scenarios {
			verdicts, said = append(verdicts, s.Status), append(said, s.Steps[0].Status)
		}
		if diff := cmp.Diff(want, []any{verdicts, said, r.Passed, r.Total}); diff != "" {
			t.Error(diff)
		}
	}
}
