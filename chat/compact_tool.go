package chat

import (
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// CompactTool is the name of the tool by which the model writes a summary if Conformance.CompactByTool
// is set, for test suites that compare traffic. Otherwise the summary is a plain answer; see summarize.
const CompactTool = "compact_chat"

// compactSpec describes the tool to the model.
func compactSpec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: tools.Native + "__" + CompactTool, Description: "Replace the conversation with a summary of it.",
		Schema: json.RawMessage(`{"type":"object","properties":{"summary":{"type":"string","description":"The summary."}},"required":["summary"]}`),
	}
}

// summarizeByTool makes the model write the summary as the argument of a tool, and shows the call. If
// the model answers with text instead, that text is the summary.
func (c *compactor) summarizeByTool(instructions string) (string, error) {
	c.rec.showProgress(progressWaiting)
	messages := read(c.rec, (*history.History).Messages)
	req := c.summaryRequest(c.model, messages, c.summaryQuestion(instructions), 0)
	req.Purpose = ""
	req.Tools = append(req.Tools, compactSpec())
	a, err := c.stream(req)
	if err != nil {
		return "", err
	}
	for _, call := range a.calls {
		var args struct {
			Summary string `json:"summary"`
		}
		if call.Name != CompactTool || json.Unmarshal([]byte(call.arguments), &args) != nil || strings.TrimSpace(args.Summary) == "" {
			continue
		}
		c.rec.emit(
			event.ToolJudged{Tool: call.Tool, Arguments: json.RawMessage(call.arguments), Decision: string(tools.Allow), Summary: compactToolSummary},
			event.ToolStarted{CallID: call.CallID}, event.Progress{Text: progressCalling},
			event.ToolFinished{CallID: call.CallID, Outputs: []string{"Compacted successfully!"}, ElapsedMS: 1},
		)
		return args.Summary, nil
	}
	if text, ok := c.rec.lastText(); ok && strings.TrimSpace(text) != "" {
		return text, nil
	}
	return "", errNoText
}
