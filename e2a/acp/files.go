package acp

import (
	"context"
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// fileTime limits a request to the client about a file; after it the file on disk is used.
const fileTime = 10 * time.Second

// errNotOpen is the error for a chat that the client does not know, such as a subagent's.
var errNotOpen = errors.New("the client has no such session")

// files returns the client's files, with the operations that the client offers.
func (a *agent) files() tools.Buffers {
	var b tools.Buffers
	offers := a.client.Capabilities.Value.FS.Value
	if offers.Read.Value {
		b.Read = func(ctx context.Context, chatID, path string) (string, error) {
			var answer struct {
				Content *string `json:"content"`
			}
			err := a.ask(ctx, chatID, "fs/read_text_file", fileRequest{Path: path}, &answer)
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
			return a.ask(ctx, chatID, "fs/write_text_file", fileRequest{Path: path, Content: &text}, &answer)
		}
	}
	return b
}

type fileRequest struct {
	Content   *string `json:"content,omitempty"` // of a file to write
	Path      string  `json:"path"`
	SessionID string  `json:"sessionId"`
}

// ask asks the client about a file of an open session.
func (a *agent) ask(ctx context.Context, session, method string, params fileRequest, answer any) error {
	if a.session(session) == nil {
		return errNotOpen
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	params.SessionID = session
	err := a.conn.Call(ctx, method, params, answer)
	if err != nil {
		a.log.Warn("the client did not do it: the file on the disk counts", "method", method, "path", params.Path, "err", err)
	}
	return err
}
