package telemetry

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/otlp"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// The instruments. Names with a dash are those of the reference server (eca-features.md 25).

func durations() otlp.Instrument {
	return otlp.Instrument{Name: "gen_ai.client.operation.duration", Unit: "s", Bounds: durationBounds()}
}

func callDurations() otlp.Instrument {
	return otlp.Instrument{Name: "eca.tool.duration", Unit: "s", Bounds: durationBounds()}
}

func mcpDurations() otlp.Instrument {
	return otlp.Instrument{Name: "mcp.client.operation.duration", Unit: "s", Bounds: durationBounds()}
}

func tokens() otlp.Instrument {
	return otlp.Instrument{
		Name: "gen_ai.client.token.usage", Unit: "{token}",
		Bounds: []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864},
	}
}

func costs() otlp.Instrument   { return otlp.Instrument{Name: "eca.usage.cost", Unit: "{USD}"} }
func prompts() otlp.Instrument { return otlp.Instrument{Name: "eca-prompt-received", Unit: "{prompt}"} }
func calls() otlp.Instrument   { return otlp.Instrument{Name: "eca-tool-called", Unit: "{call}"} }

// durationBounds returns the bounds that the conventions recommend.
func durationBounds() []float64 {
	return []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
}

// operation returns the attributes that all spans have.
func operation(name, chat, agent string) []otlp.Attribute {
	out := []otlp.Attribute{{Key: "gen_ai.operation.name", Value: name}}
	if chat != "" {
		out = append(out, otlp.Attribute{Key: "gen_ai.conversation.id", Value: chat})
	}
	if agent != "" {
		out = append(out, otlp.Attribute{Key: "gen_ai.agent.name", Value: agent})
	}
	return out
}

// modelAttributes returns a model and its provider, under the provider's name in the conventions if
// it has one.
func modelAttributes(id string) []otlp.Attribute {
	if id == "" {
		return nil
	}
	provider, name, _ := strings.Cut(id, "/")
	switch provider {
	case "google":
		provider = "gcp.gemini"
	case "bedrock":
		provider = "aws.bedrock"
	case "azure":
		provider = "azure.ai.openai"
	case "mistral":
		provider = "mistral_ai"
	}
	return []otlp.Attribute{{Key: "gen_ai.provider.name", Value: provider}, {Key: "gen_ai.request.model", Value: name}}
}

func usageAttributes(u llm.Usage) []otlp.Attribute {
	return []otlp.Attribute{
		{Key: "gen_ai.usage.input_tokens", Value: u.Input + u.CacheRead + u.CacheWrite},
		{Key: "gen_ai.usage.output_tokens", Value: u.Output},
		{Key: "gen_ai.usage.cache_read.input_tokens", Value: u.CacheRead},
		{Key: "gen_ai.usage.cache_creation.input_tokens", Value: u.CacheWrite},
	}
}

// answer collects the exported data of a model's answer.
type answer struct {
	start   time.Time
	first   time.Time // when the first text, reasoning or call arrived
	usage   *llm.Usage
	stop    llm.StopReason
	err     error
	content bool
	text    strings.Builder // set only if content is exported
}

func (a *answer) add(d llm.Delta, err error, now func() time.Time) {
	if err != nil {
		a.err = err
		return
	}
	switch d.Kind {
	case llm.UsageDelta:
		a.usage = &d.Usage
		return
	case llm.StopDelta:
		a.stop = d.Stop
		return
	case llm.RetryDelta, llm.AttemptDelta:
		return
	}
	if a.first.IsZero() {
		a.first = now()
	}
	if a.content && d.Kind == llm.TextDelta && a.text.Len() < maxContent {
		a.text.WriteString(d.Text)
	}
}

// exportAnswer exports the span and the measurements of a request.
func (t *Telemetry) exportAnswer(id string, req llm.Request, a *answer) {
	s := otlp.Span{Name: "chat " + id[strings.Index(id, "/")+1:], Kind: otlp.Client, Start: a.start, End: t.o.Now()}
	s.ID = spanID("request", req.Origin.Chat, t.o.NewID())
	t.setParent(&s, req.Origin.Chat)
	measured := append(operation("chat", "", ""), modelAttributes(id)...)
	s.Attributes = append(operation("chat", req.Origin.Chat, req.Origin.Agent), modelAttributes(id)...)
	s.Attributes = append(s.Attributes, otlp.Attribute{Key: "eca.request.purpose", Value: string(req.Purpose)})
	if req.MaxOutput > 0 {
		s.Attributes = append(s.Attributes, otlp.Attribute{Key: "gen_ai.request.max_tokens", Value: req.MaxOutput})
	}
	if !a.first.IsZero() {
		s.Attributes = append(s.Attributes, otlp.Attribute{Key: "gen_ai.response.time_to_first_chunk", Value: a.first.Sub(a.start).Seconds()})
	}
	if a.usage != nil {
		s.Attributes = append(s.Attributes, usageAttributes(*a.usage)...)
		for kind, n := range map[string]int64{"input": a.usage.Total() - a.usage.Output, "output": a.usage.Output} {
			t.exporter.Add(tokens(), float64(n), append(measured[:len(measured):len(measured)], otlp.Attribute{Key: "gen_ai.token.type", Value: kind})...)
		}
	}
	switch {
	case a.err != nil:
		fail(&s, errorKind(a.err))
		measured = append(measured, otlp.Attribute{Key: "error.type", Value: errorKind(a.err)})
	case a.stop == "":
		s.Attributes = append(s.Attributes, otlp.Attribute{Key: "gen_ai.response.finish_reasons", Value: []string{"cancelled"}})
	default:
		s.Attributes = append(s.Attributes, otlp.Attribute{Key: "gen_ai.response.finish_reasons", Value: []string{string(a.stop)}})
	}
	t.exporter.Add(durations(), s.End.Sub(s.Start).Seconds(), measured...)
	if a.content {
		s.Attributes = append(s.Attributes, t.conversation(req, a.text.String())...)
	}
	t.exporter.Span(s)
}

// exportCall exports the span and the measurements of a tool call.
func (t *Telemetry) exportCall(spec tools.Spec, call tools.Call, start time.Time, res tools.Result, err error, content bool) {
	name := spec.FullName()
	s := otlp.Span{ID: spanID("call", call.ChatID, call.ID), Name: "execute_tool " + name, Kind: otlp.Internal, Start: start, End: t.o.Now()}
	t.setParent(&s, call.ChatID)
	s.Attributes = append(operation("execute_tool", call.ChatID, call.Agent),
		otlp.Attribute{Key: "gen_ai.tool.name", Value: name}, otlp.Attribute{Key: "gen_ai.tool.call.id", Value: call.ID})
	measured := []otlp.Attribute{{Key: "gen_ai.tool.name", Value: name}}
	duration := callDurations()
	if spec.Origin == tools.OriginMCP {
		duration = mcpDurations()
		s.Name, s.Kind = "tools/call "+spec.Name, otlp.Client
		method := otlp.Attribute{Key: "mcp.method.name", Value: "tools/call"}
		s.Attributes = append(s.Attributes, method, otlp.Attribute{Key: "eca.mcp.server", Value: spec.Server})
		measured = append(measured, method)
	}
	failed := err != nil || res.Failed
	if failed {
		kind := "tool_error" // the conventions' value for a result that reports a failure
		if err != nil {
			kind = errorKind(err)
		}
		fail(&s, kind)
		measured = append(measured, otlp.Attribute{Key: "error.type", Value: kind})
	}
	t.exporter.Add(duration, s.End.Sub(s.Start).Seconds(), measured...)
	t.exporter.Add(calls(), 1, otlp.Attribute{Key: "name", Value: name}, otlp.Attribute{Key: "error", Value: failed})
	if content {
		s.Attributes = append(s.Attributes,
			otlp.Attribute{Key: "gen_ai.tool.call.arguments", Value: t.excerpt(string(call.Arguments))},
			otlp.Attribute{Key: "gen_ai.tool.call.result", Value: t.excerpt(strings.Join(res.Outputs, "\n"))})
	}
	t.exporter.Span(s)
}

// maxContent limits each exported text, in bytes.
const maxContent = 16 << 10

// excerpt returns the beginning of a text without credentials.
func (t *Telemetry) excerpt(s string) string {
	s = t.o.Clean(s)
	if len(s) > maxContent {
		s = s[:maxContent]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// exportedMessage is a message in the form of the conventions.
type exportedMessage struct {
	Role  string         `json:"role"`
	Parts []exportedPart `json:"parts"`
}

type exportedPart struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// conversation returns the texts of the newest message of a request and of its answer. Earlier
// messages are in earlier spans, and results of tools in the spans of their calls.
func (t *Telemetry) conversation(req llm.Request, answered string) (out []otlp.Attribute) {
	add := func(key, role string, texts ...string) {
		m := exportedMessage{Role: role}
		for _, s := range texts {
			m.Parts = append(m.Parts, exportedPart{"text", t.excerpt(s)})
		}
		if data, err := json.Marshal([]exportedMessage{m}); err == nil && len(texts) > 0 {
			out = append(out, otlp.Attribute{Key: key, Value: string(data)})
		}
	}
	if n := len(req.Messages); n > 0 {
		var texts []string
		for _, p := range req.Messages[n-1].Parts {
			if text, ok := p.(llm.Text); ok {
				texts = append(texts, text.Text)
			}
		}
		add("gen_ai.input.messages", string(req.Messages[n-1].Role), texts...)
	}
	if answered != "" {
		add("gen_ai.output.messages", string(llm.Assistant), answered)
	}
	return out
}
