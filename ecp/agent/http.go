package agent

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

// Handler serves the protocol over HTTP (docs/contracts/ecp.md 1.6): one message or array per POST to
// ecp.Endpoint. The answers are JSON. If the client accepts only server-sent events, and at least one
// message has an id, the answers are one such event.
func (a *Agent) Handler(o httpguard.Options) http.Handler {
	return &handler{a, httpguard.New(o, httpguard.Pages{Own: true, Methods: http.MethodPost, Headers: "Content-Type, Accept, Authorization"})}
}

type handler struct {
	agent *Agent
	guard *httpguard.Guard
}

// ServeHTTP implements http.Handler. The checks are in the order of the reference
// implementation of ECP (docs/ecp-defects.md).
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != ecp.Endpoint {
		http.Error(w, "the only path is "+ecp.Endpoint, http.StatusNotFound)
		return
	}
	if done, refused := h.guard.Admit(w, r); refused != nil {
		refused.Write(w)
		return
	} else if done {
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "calls are POST requests; the server has no event stream", http.StatusMethodNotAllowed)
		return
	}
	if refused := h.guard.Authorize(w, r); refused != nil {
		refused.Write(w)
		return
	}
	acceptsJSON, acceptsEvents := acceptedTypes(r.Header.Values("Accept"))
	if !acceptsJSON && !acceptsEvents {
		http.Error(w, "Accept must include application/json or text/event-stream", http.StatusNotAcceptable)
		return
	}
	if t := r.Header.Get("Content-Type"); t != "" && !isJSON(t) {
		http.Error(w, "Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	h.post(w, r, !acceptsJSON)
}

// post answers a message. onlyEvents is set if the client does not accept JSON.
func (h *handler) post(w http.ResponseWriter, r *http.Request, onlyEvents bool) {
	body, err := httpguard.ReadBody(w, r, MaxMessage)
	switch {
	case errors.Is(err, httpguard.ErrTooLarge):
		http.Error(w, fmt.Sprintf("the message has more than %d bytes", MaxMessage), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "cannot read the message", http.StatusBadRequest)
		return
	}
	list, batch := parseMessages(body)
	answers, _ := h.agent.enqueueMessages(r.Context(), list)
	streaming := onlyEvents && slices.ContainsFunc(list, func(m message) bool { return m.ID != nil })
	if streaming {
		w.Header().Set("Content-Type", sse.ContentType)
		w.Header().Set("Cache-Control", "no-store")
		_ = http.NewResponseController(w).Flush() // so that the client sees that its call has arrived
	}
	out := answers()
	if len(out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var v any = out
	if !batch {
		v = out[0]
	}
	line, err := ecp.Encode(v)
	if err != nil {
		h.agent.opts.Log.Error("cannot encode an answer", "err", err)
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	if streaming {
		_, _ = w.Write(sse.Append(nil, "", "message", line))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !batch && out[0].Err != nil && out[0].Err.Code == ecp.CodeParse {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = w.Write(line) // fails if the client disconnected
}

// acceptedTypes reports which kinds of answers an Accept header allows. Without the header, both are.
func acceptedTypes(header []string) (json, events bool) {
	if len(header) == 0 {
		return true, true
	}
	for part := range strings.SplitSeq(strings.Join(header, ","), ",") {
		kind, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil || params["q"] == "0" {
			continue
		}
		switch kind {
		case "*/*":
			json, events = true, true
		case "application/json", "application/*":
			json = true
		case "text/event-stream", "text/*":
			events = true
		}
	}
	return json, events
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}
