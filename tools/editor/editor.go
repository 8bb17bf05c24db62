// Package editor holds the native tools that ask the user's editor what it knows of
// the code: editor_diagnostics, editor_definition and editor_references (eca-features,
// section 17).
//
// Tools leaves out the tools whose requests a client cannot answer. If an answer does
// not come, or is empty, the model gets the reason; the wait ends with the time
// limit or with the turn. The package knows no wire format: the face that speaks with
// the client fills in Client.
package editor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// Client is what can be asked of the user's editor. A nil function means that it
// cannot be asked for that. Errors say why there is no answer, in words for the model.
type Client struct {
	// Diagnostics returns those of a file, or of everything the editor knows if path
	// is empty.
	Diagnostics func(ctx context.Context, path string) ([]tools.Diagnostic, error)
	Definition  func(ctx context.Context, at tools.Position) ([]tools.Position, error)
	References  func(ctx context.Context, at tools.Position, declaration bool) ([]tools.Position, error)
	// Files are what it has open. No tool of this package needs them.
	Files tools.Buffers
}

// Or returns a client that can be asked for what c can be asked for, and for the rest what other can.
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

// ErrStarting says that the editor cannot answer yet: a language server is starting.
// The question is asked again.
var ErrStarting = errors.New("the language server is still starting")

// Options configure the tools.
type Options struct {
	Client     Client
	Timeout    time.Duration // of one call; 0 waits as long as the turn goes on. lspTimeoutSeconds
	Navigation bool          // offer definition and references. toolCall.editorNav.enabled
}

// Tools returns the tools that the client can serve.
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

// retryDelay is the pause before an editor that is starting is asked again
// (eca-protocol, section 6).
const retryDelay = 2 * time.Second

// withTimeout asks until there is an answer, the time is over or the turn ends; then the
// error is that of ctx.
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

// listed returns one line per entry, at most limit.
func listed[E any](entries []E, limit int, line func(E) string, rest string) string {
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
