package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// Items of calls that OpenAI runs itself.
const (
	itemSearch = "web_search_call"
	itemImage  = "image_generation_call"
)

// serverTools returns the tools by the types of their items.
func serverTools() map[string]string {
	return map[string]string{itemSearch: llm.WebSearch, itemImage: llm.ImageGeneration}
}

// serverCallItem is the item of such a call, with the fields that can be sent back.
type serverCallItem struct {
	ID     string          `json:"id"`
	Type   string          `json:"type"`
	Status string          `json:"status,omitempty"`
	Action json.RawMessage `json:"action,omitempty"` // for a search
	Result string          `json:"result,omitempty"` // an image in base64
}

// serverCallDone passes on a call whose item is complete.
func (s *responsesStream) serverCallDone(raw json.RawMessage) error {
	var item struct {
		serverCallItem
		Format  string `json:"output_format"`
		Prompt  string `json:"revised_prompt"`
		Size    string `json:"size"`
		Quality string `json:"quality"`
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return &llm.Error{Kind: llm.ErrMalformed, Message: s.endpoint.Name() + " sent an unreadable output item", Cause: err}
	}
	ended, started := s.serverCalls[item.ID]
	if ended {
		return nil // the final response repeats it
	}
	s.serverCalls[item.ID] = true
	end := llm.Delta{ID: item.ID, Name: serverTools()[item.Type], Result: &llm.ServerResult{}}
	var arguments any = json.RawMessage("{}")
	switch item.Type {
	case itemSearch:
		arguments, end.Result = s.searchOutcome(item.Action)
	case itemImage:
		end.Result = llm.GeneratedImage("image/"+strings.ToLower(item.Format), item.Result)
		args := map[string]string{}
		for key, value := range map[string]string{"prompt": item.Prompt, "size": item.Size, "quality": item.Quality} {
			if value != "" {
				args[key] = value
			}
		}
		arguments, item.Action, item.Result = args, nil, ""
	}
	if item.Status == "failed" {
		end.Result.Failed = true
	}
	if len(end.Result.Images) > 0 || item.Type == itemSearch {
		end.Opaque, _ = json.Marshal(item.serverCallItem) // strings and decoded JSON always encode
	}
	s.EmitServerCall(started, arguments, end)
	return nil
}

// searchOutcome returns the arguments and the sources of a search, and counts queries. Only queries cost
// money; opening a found page does not.
func (s *responsesStream) searchOutcome(action json.RawMessage) (arguments any, result *llm.ServerResult) {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(action, &fields) // without an action, the search is unknown
	var kind string
	var sources []struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(fields["type"], &kind)
	_ = json.Unmarshal(fields["sources"], &sources)
	if kind == "" || kind == "search" {
		s.searches++
	}
	delete(fields, "sources")
	result = &llm.ServerResult{}
	for _, source := range sources {
		if source.URL != "" {
			result.Outputs = append(result.Outputs, source.URL)
		}
	}
	if len(result.Outputs) > 0 {
		result.Outputs = []string{strings.Join(result.Outputs, "\n")}
	}
	return fields, result
}

// encodeServerCall returns the item to send back.
func encodeServerCall(c llm.ServerCall) (json.RawMessage, error) {
	if len(c.Images) == 0 {
		return c.Opaque, nil
	}
	var item serverCallItem
	if err := json.Unmarshal(c.Opaque, &item); err != nil {
		return nil, fmt.Errorf("an image of the conversation: %w", err)
	}
	item.Result = base64.StdEncoding.EncodeToString(c.Images[0].Data)
	return json.Marshal(item)
}

// citation is a page that an answer cites.
type citation struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

func (s *responsesStream) cite(c citation) {
	if c.Type == "url_citation" && c.URL != "" {
		s.Emit(llm.Delta{Kind: llm.SourceDelta, Text: c.URL, Name: c.Title})
	}
}

// citations passes on the citations of a complete message, because some servers do not send an
// event for each.
func (s *responsesStream) citations(raw json.RawMessage) {
	var item struct {
		Content []struct {
			Annotations []citation `json:"annotations"`
		} `json:"content"`
	}
	if !bytes.Contains(raw, []byte("url_citation")) || json.Unmarshal(raw, &item) != nil {
		return // a message in another form cites nothing
	}
	for _, c := range item.Content {
		for _, a := range c.Annotations {
			s.cite(a)
		}
	}
}
