package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-dec29ce4/eca/e2a"
)

// serveCard says who eca is and what it can do. It is the same for everybody, and stands
// in 1.0's words, with those of 0.3 beside them.
func (s *Server) serveCard(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the card can only be read", http.StatusMethodNotAllowed)
		return
	}
	body, err := json.Marshal(s.withLegacy(s.card(s.reached(r)), s.reached(r)))
	if err != nil {
		http.Error(w, "the card can not be encoded", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	tag := fmt.Sprintf(`"%x"`, sha256.Sum256(body))
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("ETag", tag)
	h.Set("Last-Modified", s.started.UTC().Format(http.TimeFormat))
	h.Add("Vary", "Host")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body) // who left does not read it
}

// reached is the URL of Endpoint for who asks.
func (s *Server) reached(r *http.Request) string {
	if s.url != "" {
		return s.url
	}
	return "http://" + r.Host + Endpoint
}

// choicesURI names what the extended card says more: what metadata of a message can choose.
const choicesURI = "https://github.com/seed-dec29ce4/eca/a2a/choices"

// extendedCard is the card for who may call: it says which agents and models there are,
// those that the user defined included.
func (s *Server) extendedCard(ctx context.Context, url string) (map[string]any, error) {
	known, err := s.order(ctx, "", e2a.MethodConfigGet, nil)
	if err != nil {
		return nil, err
	}
	card := s.card(url)
	skills, _ := card["skills"].([]any)
	agents, _ := known["agents"].([]any)
	for _, a := range agents {
		agent, _ := a.(map[string]any)
		id, _ := agent["id"].(string)
		description, _ := agent["description"].(string)
		skills = append(skills, map[string]any{
			"id": "agent/" + id, "name": id, "tags": []any{"agent"},
			"description": strings.TrimSpace(description + " Chosen by the metadata agent of a message."),
		})
	}
	card["skills"] = skills
	capabilities, _ := card["capabilities"].(map[string]any)
	capabilities["extensions"] = []any{map[string]any{
		"uri": choicesURI, "description": "What model, agent and variant in the metadata of a message can choose.",
		"params": map[string]any{"agent": known["agent"], "agents": agents, "model": known["model"], "models": known["models"]},
	}}
	return card, nil
}

// card is that of 1.0.
func (s *Server) card(url string) map[string]any {
	card := map[string]any{
		"name":        "eca",
		"description": "A coding assistant: reads, searches and changes the files of one workspace, and runs commands there, with its user's permission.",
		"version":     s.version,
		"supportedInterfaces": []any{
			map[string]any{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
			map[string]any{"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
			map[string]any{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
		},
		"capabilities":       map[string]any{"streaming": true, "pushNotifications": s.pushes(), "extendedAgentCard": true},
		"defaultInputModes":  []any{"text/plain", "application/json", "image/png", "image/jpeg", "image/webp", "image/gif"},
		"defaultOutputModes": []any{"text/plain"},
		"skills": []any{map[string]any{
			"id": "code", "name": "Work on code", "description": "Explains, finds, changes and tests code in the workspace that eca serves.",
			"tags": []any{"code", "files", "shell"}, "examples": []any{"Why does the build fail?", "Add a test for the parser."},
		}},
	}
	if s.secured {
		card["securitySchemes"] = map[string]any{"bearer": map[string]any{"httpAuthSecurityScheme": map[string]any{"scheme": "Bearer"}}}
		// The SDK for Go reads a list of scopes here, those of JavaScript and Python an object
		// with one, as Protocol Buffers write it. All of them take an empty list.
		card["securityRequirements"] = []any{map[string]any{"schemes": map[string]any{"bearer": []any{}}}}
	}
	return card
}

// withLegacy adds what 0.3 looks for in a card.
func (s *Server) withLegacy(card map[string]any, url string) map[string]any {
	card["protocolVersion"], card["url"], card["preferredTransport"], card["supportsAuthenticatedExtendedCard"] = "0.3.0", url, "JSONRPC", true
	if s.secured {
		card["securitySchemes"] = map[string]any{"bearer": map[string]any{
			"httpAuthSecurityScheme": map[string]any{"scheme": "Bearer"},
			"type":                   "http", "scheme": "Bearer",
		}}
		card["security"] = []any{map[string]any{"bearer": []any{}}}
	}
	return card
}
