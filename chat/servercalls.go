package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// A provider may run its own tools while it answers. eca shows their calls as tool calls of the server
// "llm". These calls need no approval, because the configuration of the model enables the tools. No
// hooks run for them.

// serverLLM is the server name of such calls (eca-protocol.md 7.1).
const serverLLM = "llm"

// Limits for one answer.
const (
	maxGeneratedImage = 10 << 20 // bytes of a generated image
	maxSources        = 50
)

// Texts of a turn's progress (eca-protocol.md 7.3).
const (
	progressSearching = "Searching the web"
	progressImage     = "Generating image"
)

// serverCall is a call that the provider runs.
type serverCall struct {
	event.Tool
	id        string // the provider's
	startedAt time.Time
	started   bool // ToolStarted was emitted
}

// source is a page that the answer cites.
type source struct{ title, url string }

func (a *answer) beginServerCall(d llm.Delta) {
	t := a.t
	c := &serverCall{id: d.ID, Tool: event.Tool{CallID: t.newID(d.ID), Name: d.Name, Server: serverLLM, Origin: tools.OriginServer}, startedAt: t.session.eng.deps.Now()}
	a.serverCalls = append(a.serverCalls, c)
	t.rec.emit(event.ToolProposed{Tool: c.Tool, Summary: serverSummary(d.Name, nil)})
	switch d.Name {
	case llm.WebSearch:
		t.rec.showProgress(progressSearching)
	case llm.ImageGeneration:
		t.rec.showProgress(progressImage)
	}
}

// findServerCall returns the running call with the provider's id, or nil.
func (a *answer) findServerCall(id string) *serverCall {
	for _, c := range a.serverCalls {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (a *answer) runServerCall(d llm.Delta) {
	c := a.findServerCall(d.ID)
	if c == nil || c.started {
		return
	}
	c.started = true
	args := llm.ArgumentsObject(json.RawMessage(d.Text))
	key := map[string]string{llm.WebSearch: "webSearch", llm.ImageGeneration: "imageGeneration"}[c.Name]
	a.t.rec.emit(event.ToolJudged{
		Tool: c.Tool, Arguments: args, Summary: serverSummary(c.Name, args), API: d.API,
		Decision: string(tools.Allow), Rule: cmp.Or(key, "provider"), Reason: "the model's provider runs it",
	}, event.ToolStarted{CallID: c.CallID})
}

// endServerCall emits the result of a call. An image that cannot be shown is reported and left out,
// and is not sent to the model either.
func (a *answer) endServerCall(d llm.Delta) {
	c := a.findServerCall(d.ID)
	if c == nil || d.Result == nil {
		return
	}
	a.serverCalls = slices.DeleteFunc(a.serverCalls, func(other *serverCall) bool { return other == c })
	t := a.t
	res := tools.Result{Outputs: slices.Clone(d.Result.Outputs), Failed: d.Result.Failed}
	for _, i := range d.Result.Images {
		res.Images = append(res.Images, event.Image(i))
	}
	res = tools.Showable(res, maxGeneratedImage)
	if len(res.Images) < len(d.Result.Images) {
		d.Opaque, res.Failed = nil, true
	}
	for _, i := range res.Images {
		a.hasText = true
		res.Outputs = append(res.Outputs, fmt.Sprintf("[image %s, %d bytes]", i.MediaType, len(i.Data)))
	}
	if res.Outputs == nil {
		res.Outputs = []string{}
	}
	for i, o := range res.Outputs {
		res.Outputs[i] = strings.ToValidUTF8(o, "�")
	}
	t.rec.emit(event.ToolFinished{CallID: c.CallID, Outputs: res.Outputs, Images: res.Images, Failed: res.Failed, ElapsedMS: t.millisSince(c.startedAt), Opaque: d.Opaque})
	t.rec.showProgress(progressGenerating)
}

// endServerCalls ends the calls that the provider did not end, and lists the sources that the answer
// cites. The list is a notice, so that it does not become part of the model's text.
func (a *answer) endServerCalls() {
	for _, c := range slices.Clone(a.serverCalls) {
		a.runServerCall(llm.Delta{ID: c.id, Text: "{}"})
		a.endServerCall(llm.Delta{ID: c.id, Result: &llm.ServerResult{Failed: true, Outputs: []string{"The provider did not say how this ended."}}})
	}
	text := a.text.String()
	var lines []string
	for _, s := range a.sources {
		if !strings.Contains(text, s.url) { // some models cite sources in their text
			lines = append(lines, fmt.Sprintf("- [%s](%s)", s.title, s.url))
		}
	}
	if len(lines) > 0 {
		a.t.rec.emit(event.Notice{Markdown: true, Text: "\n\nSources:\n\n" + strings.Join(lines, "\n") + "\n"})
	}
}

// cite adds a source unless it was cited before. It ignores addresses that are not HTTP URLs.
func (a *answer) cite(d llm.Delta) {
	u, err := url.Parse(d.Text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(a.sources) == maxSources {
		return
	}
	address := strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20").Replace(d.Text)
	if slices.ContainsFunc(a.sources, func(s source) bool { return s.url == address }) {
		return
	}
	title := strings.Join(strings.Fields(strings.ToValidUTF8(d.Name, "�")), " ")
	title = strings.NewReplacer("[", "(", "]", ")", "`", "'", "\\", "/").Replace(shorten.Bytes(title, 200))
	a.sources = append(a.sources, source{cmp.Or(title, u.Host), address})
}

// serverSummary returns the label of a call.
func serverSummary(name string, args json.RawMessage) string {
	switch name {
	case llm.ImageGeneration:
		return "Generating image"
	case llm.WebSearch:
	default:
		return ""
	}
	var search struct {
		Query   string   `json:"query"`
		Queries []string `json:"queries"`
		URL     string   `json:"url"`
	}
	_ = json.Unmarshal(args, &search) // invalid arguments only make the label less specific
	what := cmp.Or(search.Query, strings.Join(search.Queries, ", "), search.URL)
	if what == "" {
		return "Web searching"
	}
	return fmt.Sprintf("Web searching '%s'", shorten.Bytes(strings.Join(strings.Fields(what), " "), 60))
}
