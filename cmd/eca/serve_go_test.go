package main

import (
	"errors"
	"net/http"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
)

// bearer adds a token to requests.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// The client of A2A's own SDK for Go reads the card without the token. It sends, streams, lists and
// cancels over both bindings.
func TestA2AGo(t *testing.T) {
	provider := newProvider(t, serveTape)
	p := newPlace(t, provider.env()...)
	url := startServe(t, p, "s3cret")
	card, err := agentcard.DefaultResolver.Resolve(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if scheme, ok := card.SecuritySchemes["bearer"].(a2a.HTTPAuthSecurityScheme); !ok || scheme.Scheme != "Bearer" || len(card.SecurityRequirements) != 1 {
		t.Errorf("%+v %+v", card.SecuritySchemes, card.SecurityRequirements)
	}
	calls := &http.Client{Transport: bearer("s3cret")}
	say := func(text string) *a2a.SendMessageRequest {
		return &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))}
	}
	for _, binding := range []a2a.TransportProtocol{a2a.TransportProtocolJSONRPC, a2a.TransportProtocolHTTPJSON} {
		t.Run(string(binding), func(t *testing.T) {
			ctx := t.Context()
			c, err := a2aclient.NewFromCard(ctx, card,
				a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []a2a.TransportProtocol{binding}}),
				a2aclient.WithJSONRPCTransport(calls), a2aclient.WithRESTTransport(calls))
			if err != nil {
				t.Fatal(err)
			}
			result, err := c.SendMessage(ctx, say("hi"))
			sent, ok := result.(*a2a.Task)
			if err != nil || !ok || sent.Status.State != a2a.TaskStateCompleted {
				t.Fatalf("%+v %v", result, err)
			}
			for event, err := range c.SendStreamingMessage(ctx, say("hang")) {
				if err != nil {
					t.Fatal(err)
				}
				if task, ok := event.(*a2a.Task); ok {
					if stopped, err := c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: task.ID}); err != nil || stopped.Status.State != a2a.TaskStateCanceled {
						t.Fatalf("%+v %v", stopped, err)
					}
				}
			}
			list, err := c.ListTasks(ctx, &a2a.ListTasksRequest{ContextID: sent.ContextID})
			if err != nil || len(list.Tasks) != 1 {
				t.Errorf("%+v %v", list, err)
			}
			if _, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: "none"}); !errors.Is(err, a2a.ErrTaskNotFound) {
				t.Errorf("%v", err)
			}
			if _, err := c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: sent.ID}); !errors.Is(err, a2a.ErrTaskNotCancelable) {
				t.Errorf("%v", err)
			}
		})
	}
}
