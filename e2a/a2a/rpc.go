package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

const (
	maxBody   = 32 << 20 // of a request, in bytes
	keepAlive = 15 * time.Second
)

// call is a request over JSON-RPC, or over HTTP+JSON.
type call struct {
	id       json.RawMessage
	method   string
	params   json.RawMessage
	legacy   bool   // from A2A 0.3
	overREST bool   // received over HTTP+JSON
	url      string // of the endpoint, as the caller reaches it
}

// serveRPC answers one call per POST: with JSON, or with a stream of server-sent events.
func (s *Server) serveRPC(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "calls are POST requests", http.StatusMethodNotAllowed)
		return
	}
	c := &call{id: json.RawMessage("null"), url: s.endpointURL(r)}
	body, status, err := readBody(w, r)
	if err != nil {
		c.answer(w, status, nil, err)
		return
	}
	if err := c.parse(body); err != nil {
		c.answer(w, http.StatusOK, nil, err)
		return
	}
	if version := requestedVersion(r); !knownVersion(version) {
		c.answer(w, http.StatusOK, nil, failure(codeVersion, "version %q of A2A is not supported; 1.0 and 0.3 are", version))
		return
	}
	s.execute(w, r, c)
}

// execute executes a call and answers it.
func (s *Server) execute(w http.ResponseWriter, r *http.Request, c *call) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	result, stream, err := s.call(ctx, c)
	if stream != nil {
		defer stream.close()
		s.stream(ctx, w, c, stream)
		return
	}
	c.answer(w, http.StatusOK, result, err)
}

// readBody reads the body of a call. status is the HTTP status for the answer to an error.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.ContentLength != 0 && (err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json")) {
		return nil, http.StatusUnsupportedMediaType, failure(codeContentType, "Content-Type must be application/json, not %q", r.Header.Get("Content-Type"))
	}
	switch body, err = httpguard.ReadBody(w, r, maxBody); {
	case errors.Is(err, httpguard.ErrTooLarge):
		return nil, http.StatusRequestEntityTooLarge, failure(codeRequest, "a call must not exceed %d MiB", maxBody>>20)
	case err != nil:
		return nil, http.StatusBadRequest, failure(codeRequest, "cannot read the call: %v", err)
	}
	return body, http.StatusOK, nil
}

// requestedVersion returns the version of A2A that a request names.
func requestedVersion(r *http.Request) string {
	if version := r.Header.Get("A2A-Version"); version != "" {
		return version
	}
	return r.URL.Query().Get("A2A-Version")
}

// knownVersion reports whether a version is supported. An empty version is supported, because the
// names of the methods show which version a caller uses.
func knownVersion(v string) bool {
	major, rest, _ := strings.Cut(strings.TrimSpace(v), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return v == "" || slices.Contains([]string{"1.0", "0.3"}, major+"."+minor)
}

// parse decodes a JSON-RPC call. Its errors are JSON-RPC errors.
func (c *call) parse(body []byte) error {
	if !json.Valid(body) {
		return failure(codeParse, "the call is not valid JSON")
	}
	m, bad := jsonrpc.Decode(body)
	if jsonrpc.IsNull(m.ID) {
		bad = failure(codeRequest, "id must be a string or a number")
	} else {
		c.id = m.ID
	}
	if bad != nil {
		return bad
	}
	if m.Method == "" {
		return failure(codeRequest, "method is missing")
	}
	c.method, c.legacy = modernName(m.Method)
	if c.params = m.Params; !c.legacy {
		c.params = camelCaseParams(m.Params)
	}
	if len(m.Params) > 0 && m.Params[0] != '{' {
		return failure(codeParams, "params must be an object")
	}
	return nil
}

// call executes a method. It returns a result, or a stream that the caller must close.
func (s *Server) call(ctx context.Context, c *call) (result any, stream *subscription, err error) {
	var target struct {
		ID            string `json:"id"`
		HistoryLength *int   `json:"historyLength"`
	}
	switch c.method {
	case "SendMessage", "SendStreamingMessage":
		var p sendParams
		if err := decode(c.params, &p); err != nil {
			return nil, nil, err
		}
		sub, err := s.send(ctx, &p, c.legacy)
		if err != nil || c.method == "SendStreamingMessage" {
			return nil, sub, err
		}
		defer sub.close()
		return s.await(ctx, c, &p, sub)
	case "GetTask", "CancelTask", "SubscribeToTask":
		if err := decode(c.params, &target); err != nil {
			return nil, nil, err
		}
		if n := target.HistoryLength; n != nil && *n < 0 {
			return nil, nil, failure(codeParams, "historyLength must not be negative")
		}
		j, err := s.tasks.find(target.ID)
		switch {
		case err != nil:
			return nil, nil, err
		case c.method == "GetTask":
			return j.snapshot(target.HistoryLength), nil, nil
		case c.method == "CancelTask":
			t, err := s.cancelTask(ctx, target.ID)
			return t, nil, err
		case j.isDone():
			return nil, nil, failure(codeUnsupported, "task %q has ended; there is nothing to subscribe to", target.ID)
		}
		return nil, j.subscribe(nil), nil
	case "ListTasks":
		var p listParams
		if err := decode(c.params, &p); err != nil {
			return nil, nil, err
		}
		result, err := s.listTasks(p)
		return result, nil, err
	case "GetExtendedAgentCard":
		card, err := s.extendedCard(ctx, c.url)
		if err == nil && c.legacy {
			card = s.withLegacy(card, c.url)
		}
		return card, nil, err
	case "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig":
		result, err := s.push(c)
		return result, nil, err
	}
	return nil, nil, failure(codeMethod, "unknown method %q", c.method)
}

// await returns the answer to SendMessage once the task has ended or waits for its caller, or
// immediately if the caller wants that.
func (s *Server) await(ctx context.Context, c *call, p *sendParams, sub *subscription) (any, *subscription, error) {
	immediate := p.Configuration.ReturnImmediately || c.legacy && p.Configuration.Blocking != nil && !*p.Configuration.Blocking
	for !immediate {
		e, more, err := sub.next(ctx)
		if err != nil {
			return nil, nil, err
		}
		if !more || e.pauses() {
			break
		}
	}
	t := sub.job.snapshot(p.Configuration.HistoryLength)
	if c.legacy {
		return t, nil, nil
	}
	return event{Task: t}, nil, nil
}

// answer sends the answer to a call that is not a stream.
func (c *call) answer(w http.ResponseWriter, status int, result any, err error) {
	kind, shown := "application/json", any(nil)
	switch {
	case c.overREST && err != nil: // clients expect plain JSON for errors
		status, shown = restError(err, status)
	case c.overREST:
		kind, shown = mediaType, result
	default:
		shown = c.response(result, err)
	}
	body, bad := json.Marshal(shown)
	if bad != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may have disconnected
}

func (c *call) response(result any, err error) jsonrpc.Message {
	if c.legacy && err == nil {
		result = toLegacy(result)
	}
	return jsonrpc.Respond(c.id, result, err)
}

// stream sends events until the task has ended, or, for SendStreamingMessage, until the task waits
// for its caller.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, c *call, sub *subscription) {
	out := sse.NewWriter(w)
	for {
		limited, cancel := context.WithTimeout(ctx, keepAlive)
		e, more, err := sub.next(limited)
		cancel()
		switch {
		case ctx.Err() != nil && !more, err == nil && !more:
			return
		case err != nil:
			if out.Comment("still here") != nil {
				return
			}
			continue
		}
		shown := any(e)
		if !c.overREST {
			shown = c.response(e, nil)
		}
		body, err := json.Marshal(shown)
		if err != nil {
			s.opts.Log.Error("cannot encode an event", "task", sub.job.id, "err", err)
			return
		}
		if errors.Join(out.Event(s.opts.NewID(), "", body), out.Flush()) != nil {
			return
		}
		if c.method == "SendStreamingMessage" && e.pauses() {
			return
		}
	}
}
