package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// The API's own search tool, and the limit of searches in one answer.
const (
	webSearchTool = "web_search_20250305"
	maxSearches   = 10
)

// Blocks of a search: the call, and its result, which contains encrypted text that must be sent
// back.
const (
	blockSearch  = "server_tool_use"
	blockResults = "web_search_tool_result"
)

type (
	searchBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	resultsBlock struct {
		Type      string          `json:"type"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
	}
)

// search is a search that may be waiting for its result.
type search struct {
	use           searchBlock
	argumentsSent bool
	ended         bool
}

// searchBlocks returns the blocks of a search as they were received.
func searchBlocks(c llm.ServerCall) []block {
	var raw []json.RawMessage
	if json.Unmarshal(c.Opaque, &raw) != nil {
		return nil
	}
	var out []block
	for _, b := range raw {
		out = append(out, block{raw: b})
	}
	return out
}

// beginSearch opens a call of the API's web search. Calls of its other tools are left out.
func (s *stream) beginSearch(p *part, b streamBlock) {
	if b.Name != llm.WebSearch {
		return
	}
	p.server, p.input = true, b.Input
	s.blocks = append(s.blocks, *p)
	s.searches = append(s.searches, &search{use: searchBlock{Type: blockSearch, ID: p.id, Name: b.Name}})
	s.Emit(llm.Delta{Kind: llm.ServerStart, ID: p.id, Name: b.Name})
}

func (s *stream) searchOf(id string) *search {
	for _, open := range s.searches {
		if open.use.ID == id && !open.ended {
			return open
		}
	}
	return nil
}

// emitSearchArguments passes on the complete arguments of a search, once.
func (s *stream) emitSearchArguments(p *part) {
	open := s.searchOf(p.id)
	if open == nil || open.argumentsSent {
		return
	}
	open.argumentsSent = true
	if open.use.Input = p.arguments; len(p.arguments) == 0 {
		open.use.Input = p.input
	}
	open.use.Input = llm.ArgumentsObject(open.use.Input)
	s.Emit(llm.Delta{Kind: llm.ServerRun, ID: p.id, Text: string(open.use.Input), API: s.Origin})
}

// endSearch handles the result of a search. After a pause, the search is in the previous answer.
func (s *stream) endSearch(b streamBlock) {
	results := resultsBlock{Type: blockResults, ToolUseID: b.ToolUseID, Content: b.Content}
	open := s.searchOf(b.ToolUseID)
	if open == nil {
		opaque, _ := json.Marshal([]any{results}) // decoded JSON always encodes
		s.EmitServerCall(false, json.RawMessage("{}"), llm.Delta{ID: b.ToolUseID, Name: llm.WebSearch, Opaque: opaque, Result: searchResult(b.Content)})
		return
	}
	if p := s.block(open.use.ID); p != nil {
		p.ended = true
		s.emitSearchArguments(p)
	}
	opaque, _ := json.Marshal([]any{open.use, results}) // decoded JSON always encodes
	open.ended = true
	s.Emit(llm.Delta{Kind: llm.ServerEnd, ID: b.ToolUseID, Opaque: opaque, Result: searchResult(b.Content)})
}

// pauseSearches ends searches whose results come with the next answer. The API needs the calls back
// in order to continue.
func (s *stream) pauseSearches() {
	for _, open := range s.searches {
		if open.ended || !open.argumentsSent || s.stop != stopPaused {
			continue
		}
		opaque, _ := json.Marshal([]any{open.use}) // decoded JSON always encodes
		s.Emit(llm.Delta{Kind: llm.ServerEnd, ID: open.use.ID, Opaque: opaque, Result: &llm.ServerResult{}})
	}
}

// searchResult returns the results of a search for the user.
func searchResult(content json.RawMessage) *llm.ServerResult {
	var pages []struct {
		Title string `json:"title"`
		URL   string `json:"url"`
	}
	if json.Unmarshal(content, &pages) == nil {
		var lines []string
		for _, p := range pages {
			lines = append(lines, strings.TrimSpace(p.Title+"\n"+p.URL))
		}
		return &llm.ServerResult{Outputs: []string{strings.Join(lines, "\n")}}
	}
	var failed struct {
		Code string `json:"error_code"`
	}
	_ = json.Unmarshal(content, &failed) // without a code, the reason is unknown
	return &llm.ServerResult{Failed: true, Outputs: []string{strings.TrimSpace("The search failed. " + failed.Code)}}
}
