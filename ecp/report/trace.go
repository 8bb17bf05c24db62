package report

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp"
)

// trace is a tool call, as a page shows it.
type trace struct {
	Name      string
	Brief     string // the arguments in one line
	Arguments string // may be empty
	Result    string
	Failed    bool
	Refused   bool
	Duration  string // empty if the agent did not report it
	More      string // further keys of the call
}

// maxBrief limits the length of Brief, in characters.
const maxBrief = 120

// traceOf converts an agent's description of a call. Values of an unexpected type become part of More.
func traceOf(c ecp.ToolCall) trace {
	t := trace{Name: c.Name}
	if len(c.Arguments) > 0 && string(c.Arguments) != "{}" {
		t.Arguments = readableJSON(c.Arguments)
		t.Brief = shorten(strings.Join(strings.Fields(t.Arguments), " "), maxBrief)
	}
	more := maps.Clone(c.Extra)
	if more == nil {
		return t
	}
	ecp.MoveField(more, ecp.CallResult, &t.Result)
	ecp.MoveField(more, ecp.CallIsError, &t.Failed)
	ecp.MoveField(more, "refused", &t.Refused)
	var ms *float64
	if ecp.MoveField(more, ecp.CallDuration, &ms); ms != nil {
		t.Duration = duration(*ms)
	}
	if len(more) > 0 {
		t.More = readableJSON(more)
	}
	return t
}

// readableJSON formats JSON for human readers: indented, and without unnecessary escapes.
func readableJSON(v any) string {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	var plain any
	dec := json.NewDecoder(&raw)
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		return err.Error()
	}
	var out bytes.Buffer
	enc = json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(plain); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

// Labels returns the variant of a scenario as key=value pairs, sorted by key.
func (s *Scenario) Labels() (out []string) {
	for _, k := range slices.Sorted(maps.Keys(s.Variant)) {
		out = append(out, k+"="+s.Variant[k])
	}
	return out
}
