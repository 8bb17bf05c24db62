package acp

import (
	"context"
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// fileTime limits how long the client may take to read or write a file. After that, the tools use the
// file on disk.
const fileTime = 10 * time.Second

// errNotOpen is the error for a chat that is not an open session, such as a subagent's.
var errNotOpen = errors.New("the client has no such session")

// files returns access to the files in the client's editor, with the operations that it supports.
func (a *agent) files() tools.Buffers {
	var b tools.Buffers
	fsCapabilities := a.client.Capabilities.Value.FS.Value
	if fsCapabilities.Read.Value {
		b.Read = func(ctx context.Context, chatID, path string) (string, error) {
			var answer struct {
				Content *string `json:"content"`
			}
			err := a.callClient(ctx, chatID, "fs/read_text_file", fileRequest{Path: path}, &answer)
			if err == nil && answer.Content == nil {
				err = errors.New("the client's answer has no content")
			}
			if err != nil {
				return "", err
			}
			return *answer.Content, nil
		}
	}
	if fsCapabilities.Write.Value {
		b.Write = func(ctx context.Context, chatID, path, text string) error {
			var answer any // {} or null
			return a.callClient(ctx, chatID, "fs/write_text_file", fileRequest{Path: path, Content: &text}, &answer)
		}
	}
	return b
}

type fileRequest struct {
	Content   *string `json:"content,omitempty"` // of a file to write
	Path      string  `json:"path"`
	SessionID string  `json:"sessionId"`
}

// callClient sends a request about a file of an open session to the client.
func (a *agent) callClient(ctx context.Context, session, method string, params fileRequest, answer any) error {
	if a.session(session) == nil {
		return errNotOpen
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	params.SessionID = session
	err := a.conn.Call(ctx, method, params, answer)
	if err != nil {
		a.log.Warn("a file request to the client failed; using the file on disk", "method", method, "path", params.Path, "err", err)
	}
	return err
}
