package importer

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// outputs assigns messages with outputs to calls. Providers repeat ids in later turns, so
// an output belongs to the last preceding call with its id.
type outputs struct {
	byCall  map[int]*Record // by the index of the call
	matched map[int]bool    // indexes of outputs that have a call
}

func pairOutputs(messages []Record) outputs {
	out := outputs{byCall: map[int]*Record{}, matched: map[int]bool{}}
	type key struct {
		server bool
		id     string
	}
	open := map[key]int{}
	for i, m := range messages {
		fields, _ := m.fields.Get("content").(transitMap)
		var k key
		switch m.Role() {
		case "tool_call", "server_tool_use":
			open[key{m.Role() == "server_tool_use", text(fields.Get("id"))}] = i
			continue
		case "tool_call_output":
			k = key{false, text(fields.Get("id"))}
		case "server_tool_result":
			k = key{true, text(fields.Get("tool-use-id"))}
		default:
			continue
		}
		if call, ok := open[k]; ok {
			out.byCall[call], out.matched[i] = &messages[i], true
			delete(open, k)
		}
	}
	return out
}

// call converts a call with its output. The result immediately follows the call: the stored
// messages do not show which calls belong to the same response, and this order is valid in
// any case.
func (c *converter) call(fields transitMap, output *Record) {
	tool := c.tool(fields)
	judged := event.ToolJudged{
		Tool: tool, Arguments: c.object(fields.Get("arguments")),
		Summary: text(fields.Get("summary")), Details: c.details(fields.Get("details")),
	}
	c.emit(event.ToolProposed{Tool: tool, Summary: judged.Summary}, judged)
	if output == nil { // the call may or may not have run
		c.emit(event.ToolStarted{CallID: tool.CallID}, event.ToolRejected{CallID: tool.CallID, Reason: event.Interrupted})
		return
	}
	content, _ := output.fields.Get("content").(transitMap)
	result, _ := content.Get("output").(transitMap)
	end := event.ToolFinished{
		CallID: tool.CallID, Outputs: []string{}, ElapsedMS: max(0, integer(content.Get("total-time-ms"))),
		Failed: content.Get("error") == true || result.Get("error") == true,
	}
	contents := result.Get("contents")
	if result == nil {
		contents = content.Get("output")
	}
	for _, p := range c.parts(contents) {
		end.Outputs = append(end.Outputs, p.text)
	}
	if same := reflect.DeepEqual(content.Get("details"), fields.Get("details")); !same {
		end.Details = c.details(content.Get("details"))
	}
	// A rejected call has an output, but no time.
	ran := content.Get("total-time-ms") != nil
	c.finish(end, *output, ran)
}

// originServer is the origin of calls that the provider runs itself.
const originServer = "server"

// serverCall converts a call that the provider ran itself.
func (c *converter) serverCall(fields transitMap, output *Record) {
	tool := event.Tool{
		CallID: c.unique(text(fields.Get("id")), "call"), Name: cmp.Or(text(fields.Get("name")), "unknown"),
		Server: "llm", Origin: originServer,
	}
	c.emit(event.ToolProposed{Tool: tool}, event.ToolJudged{Tool: tool, Arguments: c.object(fields.Get("input"))})
	if output == nil {
		c.emit(event.ToolRejected{CallID: tool.CallID, Reason: event.Interrupted})
		return
	}
	content, _ := output.fields.Get("content").(transitMap)
	end := event.ToolFinished{CallID: tool.CallID, Outputs: []string{}}
	if raw := content.Get("raw-content"); raw != nil {
		if b, err := appendJSON(nil, raw); err == nil {
			end.Outputs = append(end.Outputs, string(b))
		}
	}
	c.finish(end, *output, true)
}

func (c *converter) finish(end event.ToolFinished, output Record, ran bool) {
	if ran {
		c.emit(event.ToolStarted{CallID: end.CallID})
	}
	if at, ok := output.Created(); ok {
		c.at = at
	}
	c.emit(end)
}

// tool returns the tool of a call. Calls that did not run have only its full name.
func (c *converter) tool(fields transitMap) event.Tool {
	t := event.Tool{
		CallID: c.unique(text(fields.Get("id")), "call"),
		Name:   text(fields.Get("name")), Server: text(fields.Get("server")), Origin: text(fields.Get("origin")),
	}
	server, name, ok := strings.Cut(text(fields.Get("full-name")), "__")
	if !ok {
		server, name = "", server
	}
	t.Name = cmp.Or(t.Name, name, "unknown")
	t.Server = cmp.Or(t.Server, server, "unknown")
	if t.Origin == "" {
		t.Origin = map[string]string{"unknown": "unknown", "eca": "native"}[t.Server]
		t.Origin = cmp.Or(t.Origin, "mcp")
	}
	return t
}

// details converts details of the types that events support.
func (c *converter) details(v any) *event.Details {
	fields, ok := v.(transitMap)
	if !ok {
		return nil
	}
	switch kind := text(fields.Get("type")); kind {
	case "fileChange":
		return &event.Details{FileChange: &event.FileChange{
			Path: text(fields.Get("path")), Diff: text(fields.Get("diff")),
			LinesAdded: int(integer(fields.Get("linesAdded"))), LinesRemoved: int(integer(fields.Get("linesRemoved"))),
		}}
	case "shellCommand":
		shell := &event.ShellCommand{Commands: []event.Command{}, Background: fields.Get("background") == true}
		commands, _ := fields.Get("commands").([]any)
		for _, e := range commands {
			m, _ := e.(transitMap)
			command := event.Command{Name: text(m.Get("command")), Args: []string{}, Key: text(m.Get("approvalKey")), Remembered: m.Get("remembered") == true}
			args, _ := m.Get("args").([]any)
			for _, a := range args {
				command.Args = append(command.Args, text(a))
			}
			shell.Commands = append(shell.Commands, command)
		}
		return &event.Details{ShellCommand: shell}
	default:
		c.omit("details of the type " + kind)
		return nil
	}
}
