package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/seed-dec29ce4/eca/internal/jet"
)

// With the keys and rights of WriteKeys, a service and a worker do their work, including large
// requests and outputs, and NATS refuses the worker everything else.
func TestRoles(t *testing.T) {
	keys := t.TempDir()
	accounts, err := WriteKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := WriteKeys(keys); !errors.Is(err, os.ErrExist) {
		t.Errorf("existing keys are replaced: %v", err)
	}
	url := serveAccounts(t, accounts)
	access := func(role string) Access {
		return Access{URL: url, KeyFile: filepath.Join(keys, role+".nk"), Role: role}
	}
	ops := newEcho()
	o := options(t.TempDir(), ops)
	o.NATS = access(RoleServer)
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conn, err := Dial(t.Context(), access(RoleWorker), discardLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer NewWorker(conn, WorkerOptions{Operations: ops, Log: discardLogger()}).Close()
	var ids []string
	for i := range 3 {
		ids = append(ids, submit(t, s, request("echo", strings.Repeat("x", 1+i*300<<10), asyncMode, "")))
	}
	waitAllSucceededOnce(t, s, ids)
	for what, attack := range map[string]func(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) error{
		"accept a job": func(ctx context.Context, _ *nats.Conn, js jetstream.JetStream) error {
			_, err := js.Publish(ctx, jobPrefix(ids[0])+kindQueued, nil)
			return err
		},
		"cancel a job": func(ctx context.Context, _ *nats.Conn, js jetstream.JetStream) error {
			_, err := js.Publish(ctx, jobPrefix(ids[0])+kindCancelled, nil)
			return err
		},
		"stop a worker": func(ctx context.Context, nc *nats.Conn, _ jetstream.JetStream) error {
			_, err := nc.RequestWithContext(ctx, stopSubject(ids[0]), nil)
			return err
		},
		"remove the jobs": func(ctx context.Context, _ *nats.Conn, js jetstream.JetStream) error {
			return js.DeleteStream(ctx, streamName)
		},
		"purge the jobs": func(ctx context.Context, nc *nats.Conn, _ jetstream.JetStream) error {
			_, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.PURGE."+streamName, nil)
			return err
		},
		"make a stream": func(ctx context.Context, _ *nats.Conn, js jetstream.JetStream) error {
			_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "mine", Subjects: []string{"mine"}})
			return err
		},
		"a consumer of its own": func(ctx context.Context, _ *nats.Conn, js jetstream.JetStream) error {
			_, err := js.CreateConsumer(ctx, streamName, jetstream.ConsumerConfig{Durable: "mine", AckPolicy: jetstream.AckExplicitPolicy})
			return err
		},
		"read answers to services": func(ctx context.Context, nc *nats.Conn, _ jetstream.JetStream) error {
			if _, err := nc.Subscribe(inboxPrefix(RoleServer)+".>", func(*nats.Msg) {}); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(what, func(t *testing.T) { checkRefused(t, access(RoleWorker), attack) })
	}
	for what, attack := range map[string]func(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) error{
		"remove the jobs": func(ctx context.Context, _ *nats.Conn, js jetstream.JetStream) error {
			return js.DeleteStream(ctx, streamName)
		},
		"purge the jobs": func(ctx context.Context, nc *nats.Conn, _ jetstream.JetStream) error {
			_, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.PURGE."+streamName, nil)
			return err
		},
		"make a stream": func(ctx context.Context, _ *nats.Conn, js jetstream.JetStream) error {
			_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "mine", Subjects: []string{"mine"}})
			return err
		},
		"list streams": func(ctx context.Context, nc *nats.Conn, _ jetstream.JetStream) error {
			_, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.NAMES", nil)
			return err
		},
	} {
		t.Run("a server: "+what, func(t *testing.T) { checkRefused(t, access(RoleServer), attack) })
	}
	if _, err := Dial(t.Context(), Access{URL: url, Token: token}, discardLogger()); err == nil {
		t.Error("the server accepted a client without a key")
	}
	waitAllSucceededOnce(t, s, ids) // nothing has changed
}

// serveAccounts starts a NATS server with the accounts of a configuration file, and returns its URL.
func serveAccounts(t *testing.T, accounts string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "nats.conf")
	text, err := os.ReadFile(accounts)
	if err == nil {
		err = os.WriteFile(config, fmt.Appendf(nil, "listen: 127.0.0.1:-1\njetstream {store_dir: %q}\n%s", t.TempDir(), text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(config)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	return s.ClientURL()
}

// checkRefused checks that NATS refuses an attack of a client with the key of a role.
func checkRefused(t *testing.T, a Access, attack func(context.Context, *nats.Conn, jetstream.JetStream) error) {
	t.Helper()
	seed, err := jet.ReadSeed(t.Context(), a.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	violations := make(chan error, 1)
	nc, err := nats.Connect(a.URL, nats.Nkey(public, key.Sign), nats.CustomInboxPrefix(inboxPrefix(a.Role)), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			select {
			case violations <- err:
			default:
			}
			cancel()
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	err = attack(ctx, nc, js)
	select {
	case <-violations:
	default:
		t.Errorf("NATS did not refuse the attack: %v", err)
	}
}
