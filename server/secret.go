package server

import (
	"encoding/json"

	"github.com/seed-dec29ce4/eca/internal/redact"
)

// redactTrace returns a trace function that masks the text that a user enters to log in. Other filters
// cannot find this text, because nothing in the message marks it as a secret.
func redactTrace(trace func(incoming bool, body []byte), host Host) func(bool, []byte) {
	if trace == nil {
		return nil
	}
	return func(incoming bool, body []byte) {
		if incoming {
			body = redactSecrets(body, host)
		}
		trace(incoming, body)
	}
}

func redactSecrets(body []byte, host Host) []byte {
	var batch []json.RawMessage
	if json.Unmarshal(body, &batch) != nil {
		return redactSecretsOne(body, host)
	}
	for i, m := range batch {
		batch[i] = redactSecretsOne(m, host)
	}
	return encodeOrMask(batch)
}

// redactSecretsOne is like redactSecrets, for a single message.
func redactSecretsOne(body []byte, host Host) []byte {
	var m struct {
		JSONRPC string                     `json:"jsonrpc,omitempty"`
		ID      json.RawMessage            `json:"id,omitempty"`
		Method  string                     `json:"method"`
		Params  map[string]json.RawMessage `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil {
		return body
	}
	hide := ""
	switch m.Method {
	case "providers/loginInput":
		hide = "data"
	case "chat/prompt":
		var id string
		_ = json.Unmarshal(m.Params["chatId"], &id)
		session, ok := host.Engine().Lookup(id)
		if ok && session.MayAwaitSecret() || !ok && id != "" { // a chat that is not loaded may be in the store and await a secret
			hide = "message"
		}
	}
	if _, ok := m.Params[hide]; !ok {
		return body
	}
	m.Params[hide] = json.RawMessage(`"` + redact.Mark + `"`)
	return encodeOrMask(m)
}

// encodeOrMask encodes a message. If that fails, it returns redact.Mark.
func encodeOrMask(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte(redact.Mark)
	}
	return out
}
