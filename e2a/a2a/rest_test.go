package a2a_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// callREST sends a request to the HTTP+JSON binding.
func (r *rig) callREST(method, path, body string, header ...string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+"/a2a/"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/a2a+json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

func message(t *testing.T, text string) string {
	t.Helper()
	body, err := json.Marshal(userMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// The same tasks are available over HTTP+JSON: each operation by its path, in A2A's media type.
func TestRESTOperations(t *testing.T) {
	r := newRig(t, talks, "")
	res := r.callREST("POST", "message:send", message(t, "hi"))
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "application/a2a+json" {
		t.Errorf("%d %s", res.StatusCode, kind)
	}
	task, _ := r.answer(res)["task"].(object)
	if stateOf(task) != "COMPLETED" || answerOf(task) != "One two." {
		t.Fatalf("%v", task)
	}
	id := task["id"].(string)
	if got := r.answer(r.callREST("GET", "tasks/"+id+"?historyLength=0", "")); got["id"] != id || got["history"] != nil {
		t.Errorf("%v", got)
	}
	for _, query := range []string{"", "?pageSize=0&includeArtifacts=true", "?page_size=5&lastUpdatedAfter=2020-01-01T00:00:00Z&contextId=" + task["contextId"].(string)} {
		if got := r.answer(r.callREST("GET", "tasks"+query, "")); got["totalSize"] != 1.0 {
			t.Errorf("%s: %v", query, got)
		}
	}
	if got := r.answer(r.callREST("GET", "extendedAgentCard", "")); got["name"] != "eca" {
		t.Errorf("%v", got)
	}
	stream := r.callREST("POST", "message:stream", message(t, "hi"))
	defer stream.Body.Close()
	if kind := stream.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("%s", kind)
	}
	var kinds []string
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e object
		if err := json.Unmarshal([]byte(data), &e); err != nil || len(e) != 1 {
			t.Errorf("%s: %v", data, err)
		}
		for kind := range e {
			kinds = append(kinds, kind)
		}
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "task statusUpdate artifactUpdate") || !strings.HasSuffix(got, "statusUpdate") {
		t.Errorf("%s", got)
	}
	card := r.answer(r.callREST("GET", "../.well-known/agent-card.json", ""))
	var bindings []string
	for _, i := range card["supportedInterfaces"].([]any) {
		bindings = append(bindings, i.(object)["protocolBinding"].(string)+" "+i.(object)["protocolVersion"].(string))
	}
	if got := strings.Join(bindings, ", "); got != "JSONRPC 1.0, HTTP+JSON 1.0, JSONRPC 0.3" {
		t.Errorf("%s", got)
	}
}

// A running task can be subscribed to and cancelled.
func TestRESTCancel(t *testing.T) {
	r := newRig(t, hangs, "")
	r.Write("notes.txt", "x")
	task := r.answer(r.callREST("POST", "message:send", strings.Replace(message(t, "hi"), `{`, `{"configuration":{"returnImmediately":true},`, 1)))["task"].(object)
	id := task["id"].(string)
	for _, verb := range []string{"GET", "POST"} {
		res := r.callREST(verb, "tasks/"+id+":subscribe", "")
		line, err := bufio.NewReader(res.Body).ReadString('\n')
		if err != nil || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: %q %v", verb, line, err)
		}
		_ = res.Body.Close()
	}
	if got := r.answer(r.callREST("POST", "tasks/"+id+":cancel", "")); stateOf(got) != "CANCELED" {
		t.Errorf("%v", got)
	}
}

// Errors have an HTTP status and google.rpc.Status, with A2A's reason.
func TestRESTErrors(t *testing.T) {
	r := newRig(t, talks, "")
	task := r.answer(r.callREST("POST", "message:send", message(t, "hi")))["task"].(object)
	id := task["id"].(string)
	for _, c := range []struct {
		verb, path, body string
		header           []string
		status           int
		word, says       string
	}{
		{"GET", "tasks/none", "", nil, 404, "NOT_FOUND", "TASK_NOT_FOUND"},
		{"POST", "tasks/none:cancel", "{}", nil, 404, "NOT_FOUND", "TASK_NOT_FOUND"},
		{"POST", "tasks/" + id + ":cancel", "", nil, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"},
		{"GET", "tasks/" + id + ":subscribe", "", nil, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		{"GET", "tasks?pageSize=many", "", nil, 400, "INVALID_ARGUMENT", "pageSize must be an integer"},
		{"GET", "tasks?includeArtifacts=perhaps", "", nil, 400, "INVALID_ARGUMENT", "includeArtifacts"},
		{"POST", "message:send", "{", nil, 400, "INVALID_ARGUMENT", "not valid JSON"},
		{"POST", "message:send", "[]", nil, 400, "INVALID_ARGUMENT", "must be an object"},
		{"POST", "message:send", `{"message":5}`, nil, 400, "INVALID_ARGUMENT", "message must be an object, not a number"},
		{"POST", "message:send", "", nil, 400, "INVALID_ARGUMENT", "message is missing"},
		{"POST", "message:send", "{}", []string{"Content-Type", "text/plain"}, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"},
		{"GET", "tasks", "", []string{"A2A-Version", "0.3"}, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"},
		{"GET", "tasks", "", []string{"A2A-Version", "9.0"}, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"},
		{"GET", "message:send", "", nil, 405, "UNIMPLEMENTED", "GET is not a method of"},
		{"GET", "nothing", "", nil, 404, "UNIMPLEMENTED", "not an operation"},
		{"GET", "tasks/" + id + "/nothing", "", nil, 404, "UNIMPLEMENTED", "not an operation"},
	} {
		res := r.callREST(c.verb, c.path, c.body, c.header...)
		out, _ := r.answer(res)["error"].(object)
		raw, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.status || out["code"] != float64(c.status) || out["status"] != c.word || !strings.Contains(string(raw), c.says) || strings.Contains(string(raw), "Go ") {
			t.Errorf("%s %s: %d %s", c.verb, c.path, res.StatusCode, raw)
		}
		if kind := res.Header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%s %s: %s", c.verb, c.path, kind)
		}
	}
}

// The guard of JSON-RPC also protects HTTP+JSON.
func TestRESTNeedsTheToken(t *testing.T) {
	r := newRig(t, talks, "s3cret")
	for _, token := range []string{"", "Bearer wrong"} {
		res := r.callREST("GET", "tasks", "", "Authorization", token)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %d", token, res.StatusCode)
		}
	}
	if got := r.answer(r.callREST("GET", "tasks", "", "Authorization", "Bearer s3cret")); got["totalSize"] != 0.0 {
		t.Errorf("%v", got)
	}
}

// An image that the model makes is a part of the answer, while it is streamed and afterwards.
func TestImageOfTheModel(t *testing.T) {
	image := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n of a cat"))
	raw, err := json.Marshal(`data: {"type":"response.output_item.done","item":{"type":"image_generation_call","id":"ig","status":"completed","result":"` + image + "\"}}\n\n" +
		`data: {"type":"response.output_text.delta","delta":"A cat."}` + "\n\n" + `data: {"type":"response.completed","response":{}}` + "\n\n")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "turns: [{steps: [{raw: "+string(raw)+"}]}]", "")
	task := r.answer(r.callREST("POST", "message:send", message(t, "draw")))["task"].(object)
	got, err := json.Marshal(task["artifacts"])
	if want := `"parts":[{"text":"A cat."},{"mediaType":"image/png","raw":"` + image + `"}]`; err != nil || !strings.Contains(string(got), want) {
		t.Errorf("%s %v", got, err)
	}
}
