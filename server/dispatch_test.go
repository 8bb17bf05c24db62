package server

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// Every method of the interface has a row.
func TestEachMethodHasARow(t *testing.T) {
	t.Parallel()
	rows := map[string]bool{}
	for _, m := range protocol.Methods() {
		rows[strings.ToLower(strings.ReplaceAll(m.Name, "/", ""))] = m.Handle != nil
	}
	face := reflect.TypeFor[protocol.Server]()
	for i := range face.NumMethod() {
		if name := face.Method(i).Name; !rows[strings.ToLower(name)] {
			t.Errorf("add a row for %s to protocol.Methods", name)
		}
	}
}

// startingHost is a host that only starts MCP servers.
type startingHost struct {
	Host
	started chan string
}

func (h startingHost) StartMCPServer(name string) { h.started <- name }

// A client that does not read its messages can still send requests. A handler that waited for the
// client to read would wait forever.
func TestHandlersDoNotWaitForClient(t *testing.T) {
	t.Parallel()
	h := startingHost{started: make(chan string, 1)}
	s := &settings{}
	m := &mcpServers{connection: &connection{}, host: h, settings: s}
	s.mu.Lock() // as while the client is sent something and does not read
	defer s.mu.Unlock()
	go func() { _ = m.MCPStartServer(context.Background(), protocol.MCPParams{Name: "x"}) }()
	select {
	case <-h.started:
	case <-time.After(30 * time.Second):
		t.Fatal("the handler waits for the client")
	}
	if requested := s.takeRequested(); !requested["x"] {
		t.Errorf("the client is not notified again: %v", requested)
	}
}

// Login input does not appear in any trace, even in a batch.
func TestTracedBatch(t *testing.T) {
	t.Parallel()
	const body = `[{"jsonrpc":"2.0","id":1,"method":"providers/loginInput","params":{"provider":"acme","data":{"api-key":"planted-7f3a"}}},7]`
	got := string(redactSecrets([]byte(body), nil))
	if strings.Contains(got, "planted") || !strings.Contains(got, `"provider":"acme"`) || !strings.HasSuffix(got, ",7]") {
		t.Errorf("the trace has %s", got)
	}
}
