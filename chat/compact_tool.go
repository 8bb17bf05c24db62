package chat

import (
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Test suites that compare traffic (env: test) expect that the model writes a summary by
// calling a tool. Everybody else's summary is one answer; see summarize.

const compactTool = "compact_chat"

// compactSpec is the tool, as the model is told.
func compactSpec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: tools.Native + "__" + compactTool, Description: "Replace the conversation with a summary of it.",
		Schema: json.RawMessage(`{"type":"object","properties":{"summary":{"type":"string","description":"The summary."}},"required":["summary"]}`),
	}
}

// summarizeByTool has the model write the summary as the argument of a tool, and shows that
// as a tool call. A model that answers instead has written the summary as well.
func (t *turn) summarizeByTool(instructions string) (string, error) {
	t.enter(progressWaiting)
	t.mu.Lock()
	messages := t.history.messages()
	t.mu.Unlock()
	req := t.summaryRequest(t.model, messages, t.summaryQuestion(instructions), 0)
	req.Purpose = ""
	req.Tools = append(req.Tools, compactSpec())
	a, err := t.stream(req)
	if err != nil {
		return "", err
	}
	for _, c := range a.calls {
		var args struct {
			Summary string `json:"summary"`
		}
		if c.Name != compactTool || json.Unmarshal([]byte(c.arguments), &args) != nil || strings.TrimSpace(args.Summary) == "" {
			continue
		}
		t.emit(
			event.ToolJudged{Tool: c.Tool, Arguments: json.RawMessage(c.arguments), Decision: string(tools.Allow), Summary: progressCompactingTool},
			event.ToolStarted{CallID: c.CallID}, event.Progress{Text: progressCalling},
			event.ToolFinished{CallID: c.CallID, Outputs: []string{"Compacted successfully!"}, ElapsedMS: 1},
		)
		return args.Summary, nil
	}
	if text, ok := t.lastText(); ok && strings.TrimSpace(text) != "" {
		return text, nil
	}
	return "", errNoText
}
