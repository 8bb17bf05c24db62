package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers renders what a model decodes from an HTTP answer.
func answers(t *testing.T, api, contentType, body string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}))
	defer srv.Close()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	at := llm.Endpoint{Provider: "p", URL: srv.URL, Client: client, Limits: llm.DefaultLimits(), Now: time.Now}
	var m llm.Model = NewChat(at, ChatOptions{Think: DefaultThink()})
	if api == APIResponses {
		m = NewResponses(at)
	}
	var out []string
	for d, err := range m.Stream(context.Background(), llm.Request{Model: "m"}) {
		if err != nil {
			e := llm.AsError(err)
			return strings.Join(append(out, fmt.Sprintf("!%s %s", e.Kind, e.Message)), "|")
		}
		switch d.Kind {
		case llm.TextDelta:
			out = append(out, "t:"+d.Text)
		case llm.ReasoningStart:
			out = append(out, "r+")
		case llm.ReasoningDelta:
			out = append(out, "r:"+d.Text)
		case llm.ReasoningEnd:
			out = append(out, "r-"+string(d.Opaque))
		case llm.ToolStart:
			out = append(out, "c+"+d.ID+"="+d.Name)
		case llm.ToolEnd:
			out = append(out, "c-"+d.ID+"="+d.Text)
		case llm.ServerEnd:
			out = append(out, fmt.Sprintf("s-%s=%s,%d images", d.Name, d.ID, len(d.Result.Images)))
		case llm.SourceDelta:
			out = append(out, "cites "+d.Text+" "+d.Name)
		case llm.UsageDelta:
			out = append(out, fmt.Sprintf("u:%d,%d,%d", d.Usage.Input, d.Usage.Output, d.Usage.CacheRead))
		case llm.StopDelta:
			out = append(out, "stop:"+string(d.Stop))
		}
	}
	return strings.Join(out, "|")
}

// chunks makes a stream of events.
func chunks(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func TestChatDialects(t *testing.T) {
	call := func(index, id, name, args string) string {
		return delta(`{"tool_calls":[{` + index + `"id":"` + id + `","function":{"name":"` + name + `","arguments":"` + args + `"}}]}`)
	}
	const sse = "text/event-stream"
	for name, c := range map[string]struct{ contentType, body, want string }{
		"plain":             {sse, chunks(delta(`{"content":"a"}`), delta(`{"content":"b"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`, "[DONE]"), "t:a|t:b|u:6,2,4|stop:end"},
		"no [DONE]":         {sse, chunks(delta(`{"content":"a"}`), finish("stop")), "t:a|u:0,0,0|stop:end"},
		"mislabelled":       {"text/plain", chunks(delta(`{"content":"a"}`), finish("stop"), "[DONE]"), "t:a|u:0,0,0|stop:end"},
		"length":            {sse, chunks(delta(`{"content":"a"}`), finish("length"), "[DONE]"), "t:a|u:0,0,0|stop:length"},
		"reasoning_content": {sse, chunks(delta(`{"reasoning_content":"x"}`), delta(`{"reasoning_content":"y"}`), delta(`{"content":"a"}`), finish("stop"), "[DONE]"), "r+|r:x|r:y|r-|t:a|u:0,0,0|stop:end"},
		"reasoning":         {sse, chunks(delta(`{"reasoning":"x"}`), finish("stop"), "[DONE]"), `r+|r:x|r-{"member":"reasoning"}|u:0,0,0|stop:end`},
		"reasoning_text":    {sse, chunks(delta(`{"reasoning_text":"x"}`), finish("stop"), "[DONE]"), `r+|r:x|r-{"member":"reasoning_text"}|u:0,0,0|stop:end`},
		"said twice":        {sse, chunks(delta(`{"reasoning":"x","reasoning_content":"x"}`), finish("stop"), "[DONE]"), "r+|r:x|r-|u:0,0,0|stop:end"},
		"content blocks":    {sse, chunks(delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]}`), delta(`{"content":[{"type":"thinking","thinking":"z"},{"type":"text","text":"a"}]}`), delta(`{"content":"b"}`), finish("stop"), "[DONE]"), `r+|r:xy|r:z|r-{"member":"content"}|t:a|t:b|u:0,0,0|stop:end`},
		"odd content":       {sse, chunks(delta(`{"content":7}`)), `!malformed p sent something in its stream that is not of this API: "{\"choices\":[{\"index\":0,\"delta\":{\"content\":7}}]}"`},
		"usage of a choice": {sse, chunks(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":3}}]}`, "[DONE]"), "t:a|u:7,2,3|stop:end"},
		"cache hits":        {sse, chunks(delta(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":6}}`, "[DONE]"), "t:a|u:4,2,6|stop:end"},
		"cache writes":      {sse, chunks(delta(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"cache_creation_input_tokens":6}}`, "[DONE]"), "t:a|u:4,2,0|stop:end"},
		"usage as text":     {sse, chunks(delta(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":"5","completion_tokens":2}}`, "[DONE]"), "t:a|u:0,0,0|stop:end"},
		"usage too large":   {sse, chunks(delta(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":99999999999999999999,"completion_tokens":2}}`, "[DONE]"), "t:a|u:0,0,0|stop:end"},
		"negative usage":    {sse, chunks(delta(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":2}}`, "[DONE]"), "t:a|u:0,0,0|stop:end"},
		"usage details":     {sse, chunks(delta(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":[]}}`, "[DONE]"), "t:a|u:0,0,0|stop:end"},
		"usage of a kind":   {sse, chunks(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop","usage":true}],"usage":"free"}`, "[DONE]"), "t:a|u:0,0,0|stop:end"},
		"odd at the end":    {sse, chunks(delta(`{"content":"a"}`), finish("stop"), `{"choices":7}`, "[DONE]"), "t:a|u:0,0,0|stop:end"},
		"error at the end":  {sse, chunks(delta(`{"content":"a"}`), finish("stop"), `{"choices":7,"error":{"message":"overheated"}}`, "[DONE]"), "t:a|!unknown p failed: overheated"},
		"an image":          {sse, chunks(delta(`{"content":"a","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`), finish("stop"), "[DONE]"), "t:a|s-image_generation=image_1,1 images|u:0,0,0|stop:end"},
		"a damaged image":   {sse, chunks(delta(`{"images":[{"image_url":{"url":"https://a.example/cat.png"}}]}`), finish("stop"), "[DONE]"), "s-image_generation=image_1,0 images|u:0,0,0|stop:end"},
		"a citation":        {sse, chunks(delta(`{"content":"a","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A"}}]}`), finish("stop"), "[DONE]"), "t:a|cites https://a.example A|u:0,0,0|stop:end"},
		"two calls":         {sse, chunks(call(`"index":0,`, "1", "f", "{"), call(`"index":0,`, "", "", "}"), call(`"index":1,`, "2", "g", "{}"), finish("tool_calls"), "[DONE]"), "c+1=f|c+2=g|c-1={}|c-2={}|u:0,0,0|stop:tool_calls"},
		"all index 0":       {sse, chunks(call(`"index":0,`, "1", "f", "{"), call(`"index":0,`, "", "", "}"), call(`"index":0,`, "2", "g", "["), call(`"index":0,`, "", "", "]"), finish("stop"), "[DONE]"), "c+1=f|c+2=g|c-1={}|c-2=[]|u:0,0,0|stop:tool_calls"},
		"no index":          {sse, chunks(call("", "1", "f", "{"), call("", "", "", "}"), call("", "2", "g", "{}"), finish("stop"), "[DONE]"), "c+1=f|c+2=g|c-1={}|c-2={}|u:0,0,0|stop:tool_calls"},
		"no ids":            {sse, chunks(call(`"index":0,`, "", "f", "{}"), call(`"index":1,`, "", "g", "{}"), finish("stop"), "[DONE]"), "c+call_0=f|c+call_1=g|c-call_0={}|c-call_1={}|u:0,0,0|stop:tool_calls"},
		"id repeated":       {sse, chunks(call(`"index":0,`, "x", "f", "{"), call(`"index":0,`, "x", "", "}"), finish("stop"), "[DONE]"), "c+x=f|c-x={}|u:0,0,0|stop:tool_calls"},
		"whole":             {sse, `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "t:a|u:3,1,0|stop:end"},
		"whole, odd usage":  {sse, `{"choices":[{"message":{"content":"a"}}],"usage":[3]}`, "t:a|u:0,0,0|stop:end"},
		"whole call":        {sse, `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "c+1=f|c-1={}|u:0,0,0|stop:tool_calls"},
		"whole error":       {sse, `{"error":{"message":"overheated"}}`, "!unknown p failed: overheated"},
		"whole, cut":        {sse, `{"choices":[{"mess`, `!malformed p sent something in its stream that is not of this API: "{\"choices\":[{\"mess"`},
		"whole, empty":      {sse, `{"message":"odd"}`, "!protocol p did not stream but answered: odd"},
		"error in stream":   {sse, chunks(delta(`{"content":"a"}`), `{"error":{"message":"overheated"}}`), "t:a|!unknown p failed: overheated"},
		"cut":               {sse, chunks(delta(`{"content":"a"}`)), "t:a|!premature_stop p ended the answer before it was complete"},
		"[DONE] after text": {sse, chunks(delta(`{"content":"a"}`), "[DONE]"), "t:a|u:0,0,0|stop:unmarked"},
		"[DONE] after call": {sse, chunks(call(`"index":0,`, "1", "f", "{}"), "[DONE]"), "c+1=f|c-1={}|u:0,0,0|stop:tool_calls"},
		"[DONE] in a call":  {sse, chunks(call(`"index":0,`, "1", "f", "{"), "[DONE]"), "c+1=f|!premature_stop p ended the answer without a finish reason"},
		"only [DONE]":       {sse, chunks("[DONE]"), "!premature_stop p ended the answer without a finish reason"},
		"garbage":           {sse, chunks("<html>"), `!malformed p sent something in its stream that is not of this API: "<html>"`},
		"html":              {"text/html; charset=utf-8", "<h1>Welcome</h1>", "!protocol p answered with a web page (text/html), which is not its API: \"Welcome\""},
		"text":              {"text/plain", "OK, go away\n", `!protocol p did not stream but answered 200 OK: "OK, go away\n"`},
		"json error":        {"application/json", `{"error":"model not loaded"}`, "!protocol p did not stream but answered with application/json: model not loaded"},
	} {
		if got := answers(t, APIChat, c.contentType, c.body); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// Text between think tags is reasoning, also if a tag is split between chunks. Text that only looks
// like a tag stays text.
func TestThinkTags(t *testing.T) {
	const back = `r-{"start":"\u003cthink\u003e","end":"\u003c/think\u003e"}`
	for text, want := range map[string]string{
		"<think>hm</think>yes":            "r+|r:hm|" + back + "|t:yes",
		"\n <think>\nhm\n</think>\n\nyes": "r+|r:\nhm\n|" + back + "|t:\n\nyes",
		"<think>\n\n</think>yes":          "t:yes",
		"<think>a < b </thin</think>":     "r+|r:a < b </thin|" + back,
		"<think>never closed":             "r+|r:never closed|" + back,
		"yes, <think>no</think>":          "t:yes, <think>no</think>",
		"<thing>":                         "t:<thing>",
		"<thin":                           "t:<thin",
		"日本<think>":                       "t:日本<think>",
	} {
		for size := 1; size <= len(text); size++ {
			var data []string
			for rest := text; rest != ""; {
				n := cutRune(rest, size)
				piece, _ := json.Marshal(rest[:n])
				data, rest = append(data, delta(`{"content":`+string(piece)+`}`)), rest[n:]
			}
			got := answers(t, APIChat, "text/event-stream", chunks(append(data, finish("stop"), "[DONE]")...))
			for _, kind := range []string{"t:", "r:"} { // join adjacent deltas of the same kind
				got = regexp.MustCompile(`(\|`+kind+`[^|]*)((\|`+kind+`[^|]*)+)`).ReplaceAllStringFunc("|"+got, func(s string) string {
					return "|" + kind + strings.ReplaceAll(s, "|"+kind, "")
				})[1:]
			}
			if want := want + "|u:0,0,0|stop:end"; got != want {
				t.Errorf("%q in pieces of %d:\ngot  %s\nwant %s", text, size, got, want)
			}
		}
	}
}

// With ReferenceSplits, text is split where the suite of eca-recorded expects it, and usage is passed on
// when it arrives.
func TestReferenceSplits(t *testing.T) {
	think := DefaultThink()
	think.ReferenceSplits = true
	var got []string
	s := chatStream{text: thinkText{Think: think}, Emitter: llm.Emitter{Yield: func(d llm.Delta, _ error) bool {
		got = append(got, fmt.Sprintf("%d:%s", d.Kind, d.Text))
		return true
	}}}
	body := chunks(delta(`{"content":"<think>hm, well"}`), delta(`{"content":"</think>"}`), delta(`{"content":"日本"}`), delta(`{"content":" bar!"}`),
		`{"choices":[],"usage":{"prompt_tokens":1}}`, `{"choices":[],"usage":{"prompt_tokens":2}}`, finish("stop"))
	if err := s.answer(strings.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	const want = "2:|3:h|3:m, well|4:|1:日本|8:|1: bar!|9:"
	if got := strings.Join(got, "|"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// cutRune returns where to cut text into pieces of at least n bytes.
func cutRune(text string, n int) int {
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	return min(n, len(text))
}

func TestResponsesEvents(t *testing.T) {
	const done = `{"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":2,"input_tokens_details":{"cached_tokens":4}},"error":null}}`
	for name, c := range map[string]struct{ body, want string }{
		"text":             {chunks(`{"type":"response.created","response":{}}`, `{"type":"response.output_text.delta","delta":"a"}`, done), "t:a|u:6,2,4|stop:end"},
		"[DONE] too":       {chunks(`{"type":"response.output_text.delta","delta":"a"}`, done, "[DONE]"), "t:a|u:6,2,4|stop:end"},
		"only [DONE]":      {chunks(`{"type":"response.output_text.delta","delta":"a"}`, "[DONE]"), "t:a|stop:unmarked"},
		"[DONE] in a call": {chunks(`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.output_item.added","item":{"type":"function_call","id":"i","call_id":"c","name":"f"}}`, "[DONE]"), "t:a|c+c=f|!premature_stop p ended the answer before it was complete"},
		"call":             {chunks(`{"type":"response.output_item.added","item":{"type":"function_call","id":"i","call_id":"c","name":"f"}}`, `{"type":"response.function_call_arguments.delta","item_id":"i","delta":"{}"}`, `{"type":"response.output_item.done","item":{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"}}`, done), "c+c=f|c-c={}|u:6,2,4|stop:tool_calls"},
		"whole call":       {chunks(`{"type":"response.output_item.done","item":{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"}}`, done), "c+c=f|c-c={}|u:6,2,4|stop:tool_calls"},
		"object arguments": {chunks(`{"type":"response.output_item.done","item":{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":{"a":1}}}`, done), `c+c=f|c-c={"a":1}|u:6,2,4|stop:tool_calls`},
		"foreign item":     {chunks(`{"type":"response.output_item.added","item":{"type":"tool_search_call","id":"i","arguments":{"a":1}}}`, `{"type":"response.output_item.done","item":{"type":"tool_search_call","id":"i","arguments":{"a":1}}}`, done), "u:6,2,4|stop:end"},
		"usage as text":    {chunks(`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":{"usage":{"input_tokens":"10","output_tokens":2}}}`), "t:a|u:0,0,0|stop:end"},
		"usage details":    {chunks(`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":2,"input_tokens_details":{"cached_tokens":1e30}}}}`), "t:a|u:0,0,0|stop:end"},
		"call at the end":  {chunks(`{"type":"response.output_item.added","item":{"type":"function_call","id":"i","call_id":"c","name":"f"}}`, `{"type":"response.completed","response":{"output":[{"type":"message"},{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call","id":"j","call_id":"d","name":"g","arguments":"[]"}]}}`), "c+c=f|c-c={}|c+d=g|c-d=[]|u:0,0,0|stop:tool_calls"},
		"call named twice": {chunks(`{"type":"response.output_item.done","item":{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"}}`, `{"type":"response.completed","response":{"output":[{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"}]}}`), "c+c=f|c-c={}|u:0,0,0|stop:tool_calls"},
		"call cut":         {chunks(`{"type":"response.incomplete","response":{"output":[{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{\""}],"incomplete_details":{"reason":"max_output_tokens"}}}`), "u:0,0,0|stop:length"},
		"summary parts":    {chunks(`{"type":"response.output_item.added","item":{"type":"reasoning","id":"r"}}`, `{"type":"response.reasoning_summary_text.delta","item_id":"r","delta":"x"}`, `{"type":"response.reasoning_summary_part.added","item_id":"r","summary_index":1}`, `{"type":"response.reasoning_summary_text.delta","item_id":"r","delta":"y"}`, `{"type":"response.output_item.done","item":{"type":"reasoning","id":"r","encrypted_content":"e"}}`, done), `r+|r:x|r:` + "\n\n" + `|r:y|r-{"type":"reasoning","id":"r","encrypted_content":"e"}|u:6,2,4|stop:end`},
		"incomplete":       {chunks(`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`), "u:0,0,0|stop:length"},
		"filtered":         {chunks(`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`), "u:0,0,0|stop:refusal"},
		"failed":           {chunks(`{"type":"response.failed","response":{"error":{"code":"server_error","message":"boom"}}}`), "!overloaded p failed: boom"},
		"error":            {chunks(`{"type":"error","code":"rate_limit_exceeded","message":"slow"}`), "!rate_limited p failed: slow"},
		"nested error":     {chunks(`{"type":"error","error":{"code":"context_length_exceeded","message":"too long"}}`), "!context_overflow p failed: too long"},
		"foreign error":    {chunks(`{"error":{"message":"GPU fell off","type":"server_error","code":500}}`), "!overloaded p failed: GPU fell off"},
		"text of an error": {chunks(`{"error":"GPU fell off"}`), "!unknown p failed: GPU fell off"},
		"status of error":  {chunks(`{"type":"error","code":429,"message":"slow"}`), "!rate_limited p failed: slow"},
		"nested status":    {chunks(`{"type":"error","error":{"code":429,"message":"slow"}}`), "!rate_limited p failed: slow"},
		"unknown events":   {chunks(`{"type":"response.something.new","delta":"x"}`, done), "u:6,2,4|stop:end"},
		"cut":              {chunks(`{"type":"response.output_text.delta","delta":"a"}`), "t:a|!premature_stop p ended the answer before it was complete"},
	} {
		if got := answers(t, APIResponses, "text/event-stream", c.body); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// Reasoning is sent back as the provider sent it. If it has no summary, one is added, because the API
// refuses it otherwise.
func TestReasoningItem(t *testing.T) {
	for opaque, want := range map[string]string{
		`{"type":"reasoning","id":"r"}`:              `{"id":"r","summary":[{"type":"summary_text","text":"hm"}],"type":"reasoning"}`,
		`{"type":"reasoning","summary":[],"id":"r"}`: `{"type":"reasoning","summary":[],"id":"r"}`,
		`"odd"`: `"odd"`,
	} {
		if got := string(reasoningItem(llm.Reasoning{Text: "hm", Opaque: []byte(opaque)})); got != want {
			t.Errorf("%s: %s, want %s", opaque, got, want)
		}
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string][2]string{
		"https://api.openai.com":    {"https://api.openai.com/v1/responses", "https://api.openai.com/v1/chat/completions"},
		"https://x.example/v1/":     {"https://x.example/v1/responses", "https://x.example/v1/chat/completions"},
		"https://x.example/api/v2":  {"https://x.example/api/v2/v1/responses", "https://x.example/api/v2/chat/completions"},
		"http://localhost:1234":     {"http://localhost:1234/v1/responses", "http://localhost:1234/v1/chat/completions"},
		"https://x.example/openai/": {"https://x.example/openai/v1/responses", "https://x.example/openai/chat/completions"},
	} {
		if r, c := URL(in, "", APIResponses), URL(in, "", APIChat); r != want[0] || c != want[1] {
			t.Errorf("%s: %s %s", in, r, c)
		}
	}
	if got := URL("https://x.example/", "/own", APIResponses); got != "https://x.example/own" {
		t.Error(got)
	}
}

func FuzzChatStream(f *testing.F) {
	f.Add(`{"choices":[{"message":{"content":"<think>a</think>b"}}]}`)
	f.Add(chunks(delta(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{"}}]}`), finish("stop")))
	f.Fuzz(func(t *testing.T, body string) {
		terminal := 0
		s := chatStream{endpoint: llm.Endpoint{Provider: "p"}, text: thinkText{Think: DefaultThink()}, Emitter: llm.Emitter{Yield: func(d llm.Delta, _ error) bool {
			if terminal > 0 {
				t.Errorf("a delta after the end: %+v", d)
			}
			if d.Kind == llm.StopDelta {
				terminal++
			}
			return true
		}}}
		if err := s.answer(strings.NewReader(body)); (err == nil) != (terminal == 1) {
			t.Errorf("%d terminal deltas and error %v", terminal, err)
		}
	})
}
