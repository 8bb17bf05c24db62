package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-dec29ce4/eca/e2a/turn"
)

// serveCard serves the agent card, which is the same for every caller. It has the form of 1.0 with
// the members that 0.3 needs.
func (s *Server) serveCard(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the card can only be read", http.StatusMethodNotAllowed)
		return
	}
	body, err := json.Marshal(s.withLegacy(s.card(s.endpointURL(r)), s.endpointURL(r)))
	if err != nil {
		http.Error(w, "cannot encode the card", http.StatusInternalServerError)
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
	_, _ = w.Write(body) // the caller may have disconnected
}

// endpointURL returns the URL of Endpoint as the caller reaches it.
func (s *Server) endpointURL(r *http.Request) string {
	if s.opts.URL != "" {
		return s.opts.URL
	}
	return "http://" + r.Host + Endpoint
}

// choicesURI identifies the extension in the extended card that lists the values for the metadata of
// a message.
const choicesURI = "https://github.com/seed-dec29ce4/eca/a2a/choices"

// card is the agent card of 1.0, followed by the members that 0.3 reads.
type card struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Version      string          `json:"version"`
	Interfaces   []binding       `json:"supportedInterfaces"`
	Capabilities capabilities    `json:"capabilities"`
	InputModes   []string        `json:"defaultInputModes"`
	OutputModes  []string        `json:"defaultOutputModes"`
	Skills       []skill         `json:"skills"`
	Schemes      json.RawMessage `json:"securitySchemes,omitempty"`
	Requirements json.RawMessage `json:"securityRequirements,omitempty"`

	LegacyVersion      string          `json:"protocolVersion,omitempty"`
	LegacyURL          string          `json:"url,omitempty"`
	LegacyTransport    string          `json:"preferredTransport,omitempty"`
	LegacyExtendedCard bool            `json:"supportsAuthenticatedExtendedCard,omitempty"`
	LegacyRequirements json.RawMessage `json:"security,omitempty"`
}

type binding struct {
	URL      string `json:"url"`
	Protocol string `json:"protocolBinding"`
	Version  string `json:"protocolVersion"`
}

type capabilities struct {
	Streaming    bool        `json:"streaming"`
	Push         bool        `json:"pushNotifications"`
	ExtendedCard bool        `json:"extendedAgentCard"`
	Extensions   []extension `json:"extensions,omitempty"`
}

type extension struct {
	URI         string     `json:"uri"`
	Description string     `json:"description"`
	Params      cardParams `json:"params"`
}

// cardParams are the possible values for the metadata of a message, and the defaults.
type cardParams struct {
	Agent  string       `json:"agent"`
	Agents []turn.Agent `json:"agents"`
	Model  string       `json:"model"`
	Models []string     `json:"models"`
}

type skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
}

// How callers send their token. In the requirements, the SDK for Go reads a list of scopes; those for
// JavaScript and Python read an object that contains a list, as Protocol Buffers write it. All of
// them accept an empty list.
const (
	bearerScheme       = `{"bearer":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}}`
	bearerRequirement  = `[{"schemes":{"bearer":[]}}]`
	legacyBearerScheme = `{"bearer":{"httpAuthSecurityScheme":{"scheme":"Bearer"},"scheme":"Bearer","type":"http"}}`
	legacyRequirement  = `[{"bearer":[]}]`
)

// extendedCard returns the card for authorized callers, which also lists the agents and models,
// including those that the user defined.
func (s *Server) extendedCard(ctx context.Context, url string) (*card, error) {
	_, known, err := s.opts.Turns.Choices(ctx, "")
	if err != nil {
		return nil, failure(codeInternal, "%s", s.opts.Turns.Explain(ctx, err).Message)
	}
	c := s.card(url)
	for _, a := range known.Agents {
		description := strings.TrimSpace(a.Description + " Chosen by the metadata agent of a message.")
		c.Skills = append(c.Skills, skill{ID: "agent/" + a.ID, Name: a.ID, Tags: []string{"agent"}, Description: description})
	}
	c.Capabilities.Extensions = []extension{{
		URI: choicesURI, Description: "The model, agent and variant that the metadata of a message can choose.",
		Params: cardParams{known.Agent, known.Agents, known.Model, known.Models},
	}}
	return c, nil
}

// card returns the card of 1.0.
func (s *Server) card(url string) *card {
	c := &card{
		Name:         "eca",
		Description:  "A coding assistant: reads, searches and changes the files of one workspace, and runs commands there, with its user's permission.",
		Version:      s.opts.Version,
		Interfaces:   []binding{{url, "JSONRPC", "1.0"}, {url, "HTTP+JSON", "1.0"}, {url, "JSONRPC", "0.3"}},
		Capabilities: capabilities{Streaming: true, Push: s.pushEnabled(), ExtendedCard: true},
		InputModes:   []string{"text/plain", "application/json", "image/png", "image/jpeg", "image/webp", "image/gif"},
		OutputModes:  []string{"text/plain"},
		Skills: []skill{{
			ID: "code", Name: "Work on code", Description: "Explains, finds, changes and tests code in the workspace that eca serves.",
			Tags: []string{"code", "files", "shell"}, Examples: []string{"Why does the build fail?", "Add a test for the parser."},
		}},
	}
	if s.opts.Secured {
		c.Schemes, c.Requirements = json.RawMessage(bearerScheme), json.RawMessage(bearerRequirement)
	}
	return c
}

// withLegacy adds the members that 0.3 needs.
func (s *Server) withLegacy(c *card, url string) *card {
	c.LegacyVersion, c.LegacyURL, c.LegacyTransport, c.LegacyExtendedCard = "0.3.0", url, "JSONRPC", true
	if s.opts.Secured {
		c.Schemes, c.LegacyRequirements = json.RawMessage(legacyBearerScheme), json.RawMessage(legacyRequirement)
	}
	return c
}
