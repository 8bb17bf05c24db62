// Package editor has the native tools that query the user's editor about code: editor_diagnostics,
// editor_definition and editor_references (eca-features.md, section 17).
//
// Tools omits tools whose requests the client cannot answer. If there is no answer, or an empty
// one, the model gets the reason. Waiting ends with the time limit or with the turn. The package
// knows no wire format: the face of the client provides the functions of Client.
package editor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// Client has the queries that the user's editor supports. A nil function is not supported. Errors
// tell the model why there is no answer.
type Client struct {
	// Diagnostics returns the diagnostics of a file, or of all files if path is empty.
	Diagnostics func(ctx context.Context, path string) ([]tools.Diagnostic, error)
	Definition  func(ctx context.Context, at tools.Position) ([]tools.Position, error)
	References  func(ctx context.Context, at tools.Position, declaration bool) ([]tools.Position, error)
	// Files are the documents open in the editor. The tools of this package do not use them.
	Files tools.Buffers
}

// Or returns a client that uses other for the queries that c does not support.
func (c Client) Or(other Client) Client {
	if c.Diagnostics == nil {
		c.Diagnostics = other.Diagnostics
	}
	if c.Definition == nil {
		c.Definition = other.Definition
	}
	if c.References == nil {
		c.References = other.References
	}
	if c.Files.Read == nil {
		c.Files = other.Files
	}
	return c
}

// ErrStarting means that a language server is still starting. The query is repeated later.
var ErrStarting = errors.New("the language server is still starting")

// Options configure the tools.
type Options struct {
	Client     Client
	Timeout    time.Duration // of one call (lspTimeoutSeconds); 0 waits until the turn ends
	Navigation bool          // offer the tools for definitions and references (toolCall.editorNav.enabled)
}

// Tools returns the tools that the client supports.
func Tools(o Options) []tools.Tool {
	var list []tools.Tool
	if o.Client.Diagnostics != nil {
		list = append(list, diagnostics(o))
	}
	if o.Navigation && o.Client.Definition != nil {
		list = append(list, definition(o))
	}
	if o.Navigation && o.Client.References != nil {
		list = append(list, references(o))
	}
	return list
}

// retryDelay is the pause before a query is repeated after ErrStarting (eca-protocol.md, section 6).
const retryDelay = 2 * time.Second

// withTimeout repeats ask until it has an answer, the timeout passes or the turn ends; in the last
// case the error is that of ctx.
func withTimeout[A any](ctx context.Context, timeout time.Duration, ask func(context.Context) (A, error)) (A, error) {
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for {
		answer, err := ask(limited)
		if err == nil {
			return answer, nil
		}
		starting := errors.Is(err, ErrStarting)
		if starting {
			pause(limited, retryDelay)
		}
		switch {
		case ctx.Err() != nil:
			return answer, ctx.Err()
		case limited.Err() != nil && starting:
			return answer, fmt.Errorf("%w after %s; try again later", ErrStarting, timeout)
		case limited.Err() != nil:
			return answer, fmt.Errorf("the editor did not answer within %s", timeout)
		case !starting:
			return answer, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// formatList returns one line per entry, for at most limit entries. rest follows the number of omitted
// entries.
func formatList[E any](entries []E, limit int, line func(E) string, rest string) string {
	var lines []string
	for i, e := range entries {
		if i == limit {
			lines = append(lines, fmt.Sprintf("... %d more are left out%s", len(entries)-limit, rest))
			break
		}
		lines = append(lines, line(e))
	}
	return strings.Join(lines, "\n")
}
