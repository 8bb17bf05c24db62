package mcp

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
)

// Lists all legal transitions.
func TestTransitions(t *testing.T) {
	states := []State{Disabled, Stopped, Starting, Running, NeedsLogin, Failed, Stopping}
	legal := map[State]string{
		Disabled:   "starting stopped",
		Stopped:    "starting disabled",
		Starting:   "running requires-auth failed stopping",
		Running:    "requires-auth failed stopping",
		NeedsLogin: "starting stopped disabled",
		Failed:     "starting stopped disabled",
		Stopping:   "stopped disabled",
	}
	for _, from := range states {
		for _, to := range states {
			want := strings.Contains(" "+legal[from]+" ", " "+string(to)+" ")
			if from.canMoveTo(to) != want {
				t.Errorf("%s -> %s: %v, want %v", from, to, !want, want)
			}
			if want && from.moveTo(to) != to {
				t.Errorf("%s does not become %s", from, to)
			}
		}
	}
	if State("nonsense").canMoveTo(Running) {
		t.Error("an unknown state goes somewhere")
	}
	defer func() {
		if recover() == nil {
			t.Error("an illegal transition goes unnoticed")
		}
	}()
	Stopped.moveTo(Running)
}

func TestPause(t *testing.T) {
	var got []time.Duration
	for n := 0; ; n++ {
		d, ok := restartDelay(n)
		if !ok {
			break
		}
		got = append(got, d)
	}
	if len(got) != maxRestarts || got[0] != firstRestart || got[1] != 2*firstRestart || got[len(got)-1] > maxRestartDelay {
		t.Errorf("pauses: %v", got)
	}
}

// A panic over a server's data fails only that server.
func TestContained(t *testing.T) {
	failed := make(chan struct{}, 1)
	m := New(Deps{
		Resolve: func(context.Context, string, config.MCPServer) (Launch, error) { panic("boom") },
		Log:     slog.New(slog.DiscardHandler), Now: time.Now,
		Changed: func() {
			select {
			case failed <- struct{}{}:
			default:
			}
		},
	})
	defer m.Close()
	m.Begin()
	m.Apply(Settings{}, map[string]config.MCPServer{"s": {Command: "x"}})
	for late := deadline(t); ; {
		if s, _ := m.Status("s"); s.State == Failed {
			if s.Reason != "internal error; see the log" {
				t.Errorf("%+v", s)
			}
			return
		}
		select {
		case <-failed:
		case <-late:
			t.Fatal("the server did not fail")
		}
	}
}
