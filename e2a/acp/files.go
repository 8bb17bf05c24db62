package acp

import (
	"context"
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// fileTime bounds what the client is asked about a file: the disk is there too.
const fileTime = 10 * time.Second

// errNotOpen is a chat that the client knows nothing of, as a subagent's.
var errNotOpen = errors.New("the client has no such session")

// files are those of the client, as far as it offers them.
func (a *agent) files() tools.Buffers {
	var b tools.Buffers
	offers := a.client.Capabilities.Value.FS.Value
	if offers.Read.Value {
		b.Read = func(ctx context.Context, chatID, path string) (string, error) {
			var answer struct {
				Content *string `json:"content"`
			}
			err := a.ask(ctx, chatID, "fs/read_text_file", object{"path": path}, &answer)
			if err == nil && answer.Content == nil {
				err = errors.New("the client's answer has no content")
			}
			if err != nil {
				return "", err
			}
			return *answer.Content, nil
		}
	}
	if offers.Write.Value {
		b.Write = func(ctx context.Context, chatID, path, text string) error {
			var answer any // {} or null
			return a.ask(ctx, chatID, "fs/write_text_file", object{"path": path, "content": text}, &answer)
		}
	}
	return b
}

// ask asks the client about a file, for a session that is open.
func (a *agent) ask(ctx context.Context, session, method string, params object, answer any) error {
	a.mu.Lock()
	_, open := a.sessions[session]
	a.mu.Unlock()
	if !open {
		return errNotOpen
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	params["sessionId"] = session
	err := a.peer.call(ctx, method, params, answer)
	if err != nil {
		a.log.Warn("the client did not do it: the file on the disk counts", "method", method, "path", params["path"], "err", err)
	}
	return err
}
