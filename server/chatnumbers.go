package server

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/pattern"
)

// numberedChat matches a chatId that is a number, or a number in quotes.
var numberedChat = pattern.Lazy(`"chat(?:Id|-id)"\s*:\s*"?-?[0-9.]+"?\s*[,}]`)

// chatNumbers maps a client's chat numbers to chat ids, for a client that numbers its chats.
type chatNumbers struct {
	newID func() string

	mu  sync.Mutex        // guards ids
	ids map[string]string // by the client's number
}

// resolve replaces a numeric chatId with the id of a chat. One client sends the number of its tab,
// which is the same in every session and every project. Such a number refers to a chat of this
// connection, never to a stored one. A number in quotes is taken as an id, unless the connection
// has a chat for it.
func (n *chatNumbers) resolve(params json.RawMessage) json.RawMessage {
	if !numberedChat().Match(params) {
		return params
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil || len(fields["chatId"]) == 0 {
		return params // decoding the params reports the error
	}
	number, quoted := strings.CutPrefix(string(fields["chatId"]), `"`)
	number = strings.TrimSuffix(number, `"`)
	n.mu.Lock()
	id, known := n.ids[number]
	if !known && !quoted {
		id = n.newID()
		n.ids[number] = id
	}
	n.mu.Unlock()
	if id == "" {
		return params
	}
	fields["chatId"], _ = json.Marshal(id)
	resolved, err := json.Marshal(fields)
	if err != nil {
		return params
	}
	return resolved
}
