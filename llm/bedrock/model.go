package bedrock

import (
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// baseName returns a model's name without the ARN prefix and without the region group of an
// inference profile.
func baseName(id string) string {
	id = id[strings.LastIndexByte(id, '/')+1:]
	group, rest, ok := strings.Cut(id, ".")
	if ok && slices.Contains([]string{"us", "us-gov", "eu", "apac", "jp", "au", "ca", "global"}, group) {
		return rest
	}
	return id
}

// vendor returns the vendor of a model: anthropic, amazon, meta and so on. For an ARN without a
// vendor, it returns the ARN's last part.
func vendor(id string) string {
	v, _, _ := strings.Cut(baseName(id), ".")
	return v
}

// claudeVersion returns the version of a Claude model (see llm.ClaudeVersion); 0 for other models, and for
// Claude models before the third generation.
func claudeVersion(id string) int {
	v, _ := llm.ClaudeVersion(baseName(id))
	if v < 300 {
		return 0
	}
	return v
}

// isNova2 reports whether a model is an Amazon Nova 2 model.
func isNova2(id string) bool { return strings.HasPrefix(baseName(id), "amazon.nova-2") }

// Reasons reports whether a model is known to reason on request.
func Reasons(id string) bool { return claudeVersion(id) >= 307 || isNova2(id) }

// thinking returns the model-specific fields that ask a model to reason, or nil. maxOutput is the
// limit in tokens that reasoning and the answer share; 0 means unknown.
func thinking(id string, maxOutput int64) map[string]any {
	const budget, minBudget = 2048, 1024
	v := claudeVersion(id)
	switch {
	case v >= 407: // without display, it returns none of its reasoning
		return map[string]any{"thinking": map[string]any{"type": "adaptive", "display": "summarized"}}
	case v >= 406:
		return map[string]any{"thinking": map[string]any{"type": "adaptive"}}
	case v >= 307:
		tokens := int64(budget)
		if maxOutput > 0 {
			tokens = min(tokens, maxOutput/2)
		}
		if tokens < minBudget {
			return nil
		}
		return map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": tokens}}
	case isNova2(id):
		return map[string]any{"reasoningConfig": map[string]any{"type": "enabled", "maxReasoningEffort": "medium"}}
	}
	return nil
}

// caching lists where a model accepts cache points. With a cache point elsewhere, it refuses the
// request.
type caching struct {
	system   bool
	tools    bool
	messages int  // how many of the last user messages get one
	results  bool // also in messages with tool results
	point    *cachePoint
}

// cachingOf returns where a request gets cache points. Claude models before 4.5 have no cache for
// an hour and refuse requests for one.
func cachingOf(req llm.Request) caching {
	name := baseName(req.Model)
	point := &cachePoint{Type: "default"}
	switch v := claudeVersion(req.Model); {
	case !req.Cached():
	case v >= 307, strings.Contains(name, "claude-3-5-haiku"):
		if v >= 405 {
			point.TTL = req.Retention.TTL()
		}
		return caching{system: true, tools: true, messages: 2, results: true, point: point}
	case strings.HasPrefix(name, "amazon.nova-"):
		return caching{system: true, messages: 1, point: point}
	}
	return caching{}
}

// acceptsStatusAndImages reports whether a model accepts results with a status and with images.
func acceptsStatusAndImages(id string) bool {
	return slices.Contains([]string{"anthropic", "amazon"}, vendor(id))
}
