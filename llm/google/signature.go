package google

import (
	"encoding/json"

	"github.com/seed-dec29ce4/eca/llm"
)

// signature is a thoughtSignature and the part it belongs to. It must be sent back on the same
// part. The signatures of an answer are stored with its reasoning, as Opaque.
type signature struct {
	On    string `json:"on"`             // onThought, onText or onCall
	Call  int    `json:"call,omitempty"` // which call of the answer
	Value string `json:"signature"`
}

// The kinds of parts with a signature.
const (
	onThought = "thought" // the reasoning it is stored with
	onText    = "text"    // the text before the reasoning
	onCall    = "call"
)

// signatures returns the signatures stored with the reasoning of an earlier answer, if it came from
// origin.
func signatures(r llm.Reasoning, origin string) []signature {
	var out []signature
	if r.API != origin || json.Unmarshal(r.Opaque, &out) != nil {
		return nil
	}
	return out
}
