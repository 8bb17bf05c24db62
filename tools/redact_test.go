package tools

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// leakingTool returns its secret in all ways.
type leakingTool struct{ Tool }

func (leakingTool) Run(_ context.Context, _ Call, out Sink) (Result, error) {
	if out != nil {
		out("chunk sec")
		out("ret\nopen")
	}
	stop := event.SandboxStop{Text: "a secret", Hosts: []string{"secret.example"}, Folder: "/secret"}
	return Result{Outputs: []string{"one secret", "none"}, Stops: []event.SandboxStop{stop}}, errors.New("error secret")
}

func TestRedact(t *testing.T) {
	tool := Redact(leakingTool{}, func(s string) string { return strings.ReplaceAll(s, "secret", "*") })
	var chunk string
	res, err := tool.Run(t.Context(), Call{}, func(s string) { chunk += s })
	if chunk != "chunk *\n" || res.Outputs[0] != "one *" || res.Outputs[1] != "none" || err.Error() != "error *" {
		t.Errorf("%q, %q, %v", chunk, res.Outputs, err)
	}
	if s := res.Stops[0]; s.Text != "a *" || s.Hosts[0] != "*.example" || s.Folder != "/*" {
		t.Errorf("%+v", s)
	}
	if _, err := tool.Run(t.Context(), Call{}, nil); err.Error() != "error *" {
		t.Error(err)
	}
}

// wholeLines passes on whole lines only. It drops lines that are too long instead of passing on their
// end, which may begin in the middle of a secret.
func TestByLine(t *testing.T) {
	var got strings.Builder
	out := wholeLines(func(lines string) { got.WriteString(lines) })
	long := strings.Repeat("x", 64<<10)
	for _, chunk := range []string{"a", "b\nc", "d\n", long, "xsec", "ret\ne\n", "f\n" + long + "y", "secret", "\n", "g\n"} {
		out(chunk)
	}
	if got.String() != "ab\ncd\ne\nf\ng\n" {
		t.Errorf("%q", got.String())
	}
}
