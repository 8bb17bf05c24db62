package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/visible"
)

// commandQuestion is a question to the user about a command that the sandbox stopped or moved.
type commandQuestion struct {
	Text    string `json:"question"`
	Options []struct{ Label, Description string }

	answer chan string // receives the chosen label; empty if the user did not choose
}

// takesQuestions reports whether there is a user who can answer questions about commands.
func (f execFlags) takesQuestions() bool { return f.approve != approveNone && hasTerminal() }

// question answers chat/askQuestion. It passes the question to the goroutine that also asks about
// calls, so only one question at a time uses the terminal.
func (c *execClient) question(req *jsonrpc.Request) (any, error) {
	q := commandQuestion{answer: make(chan string, 1)}
	if err := json.Unmarshal(req.Params, &q); err != nil {
		return nil, err
	}
	return jsonrpc.Later(func(ctx context.Context) (any, error) {
		select {
		case c.questions <- q:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		select {
		case label := <-q.answer:
			return map[string]any{"answer": label, "cancelled": label == ""}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}), nil
}

// askAboutCommand asks on the terminal and returns the label that the user chose, or "".
func askAboutCommand(ctx context.Context, q commandQuestion) string {
	labels, keys, choices := map[string]string{}, "", ""
	for _, o := range q.Options {
		key := strings.ToLower(o.Label[:min(1, len(o.Label))])
		labels[key], labels[strings.ToLower(o.Label)] = o.Label, o.Label
		keys += key + "/"
		choices += fmt.Sprintf("  %s: %s. %s\n", key, o.Label, o.Description)
	}
	prompt := visible.Text(choices) + "  Enter: decide nothing; it stays as it is\nAnswer? [" + keys + "Enter] "
	text := "\n" + visible.Text(q.Text) + "\n"
	for range 1 + maxRepeats {
		line, asked := askTerminal(ctx, text+prompt)
		if label := labels[line]; label != "" || line == "" || !asked {
			return label
		}
		text = visible.Text(fmt.Sprintf("%q is not an answer", line)) + "\n"
	}
	return ""
}
