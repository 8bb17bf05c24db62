package a2a

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
)

// serveCard says who eca is and what it can do. It is the same for everybody, and stands
// in 1.0's words, with those of 0.3 beside them.
func (s *Server) serveCard(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the card can only be read", http.StatusMethodNotAllowed)
		return
	}
	url := s.url
	if url == "" {
		url = "http://" + r.Host + Endpoint
	}
	body, err := json.Marshal(s.card(url))
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

func (s *Server) card(url string) map[string]any {
	card := map[string]any{
		"name":        "eca",
		"description": "A coding assistant: reads, searches and changes the files of one workspace, and runs commands there, with its user's permission.",
		"version":     s.version,
		"supportedInterfaces": []any{
			map[string]any{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
			map[string]any{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
		},
		"capabilities":       map[string]any{"streaming": true, "pushNotifications": s.pushes(), "extendedAgentCard": false},
		"defaultInputModes":  []any{"text/plain", "application/json", "image/png", "image/jpeg", "image/webp", "image/gif"},
		"defaultOutputModes": []any{"text/plain"},
		"skills": []any{map[string]any{
			"id": "code", "name": "Work on code", "description": "Explains, finds, changes and tests code in the workspace that eca serves.",
			"tags": []any{"code", "files", "shell"}, "examples": []any{"Why does the build fail?", "Add a test for the parser."},
		}},
		// 0.3
		"protocolVersion": "0.3.0", "url": url, "preferredTransport": "JSONRPC",
	}
	if s.secured {
		card["securitySchemes"] = map[string]any{"bearer": map[string]any{
			"httpAuthSecurityScheme": map[string]any{"scheme": "Bearer"},
			"type":                   "http", "scheme": "bearer", // 0.3
		}}
		card["securityRequirements"] = []any{map[string]any{"schemes": map[string]any{"bearer": map[string]any{"list": []any{}}}}}
		card["security"] = []any{map[string]any{"bearer": []any{}}} // 0.3
	}
	return card
}
