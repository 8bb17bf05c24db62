package google

import (
	"encoding/json"

	"github.com/seed-dec29ce4/eca/llm"
)

// signature is a thoughtSignature with the part it came on: the API wants it back on the
// same part. The signatures of an answer travel with its reasoning, as Opaque.
type signature struct {
	On    string `json:"on"`             // onThought, onText or onCall
	Call  int    `json:"call,omitempty"` // which call of the answer
	Value string `json:"signature"`
}

// The kinds of parts with a signature.
const (
	onThought = "thought" // the reasoning it is kept with
	onText    = "text"    // the text before it
	onCall    = "call"
)

// signatures reads what an earlier answer's reasoning kept, if it was made here.
func signatures(r llm.Reasoning, origin string) []signature {
	var out []signature
	if r.API != origin || json.Unmarshal(r.Opaque, &out) != nil {
		return nil
	}
	return out
}
