package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/mcp/login"
)

// conformingUser is the user of the conformance suite's client. The user logs in whenever a server
// asks for it and agrees to everything.
type conformingUser struct {
	dir     string
	store   *auth.Store
	account *login.Account
	browser *http.Client
}

// metadataDocument is the address of the metadata document by which the suite knows the client.
const metadataDocument = "https://conformance-test.local/client-metadata.json"

func newConformingUser(network *netclient.Network, url string) (*conformingUser, error) {
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, err
	}
	u := &conformingUser{dir: dir, store: auth.New(dir, nil), browser: network.Client(netclient.Options{})}
	accounts := login.New(login.Deps{
		Store: func() *auth.Store { return u.store }, Now: time.Now, Log: slog.Default(),
		HTTP: func() *http.Client { return network.Client(netclient.Options{Guarded: true}) },
	})
	u.account = accounts.Of(login.Server{Key: "s", URL: url, ClientID: cmp.Or(given.ClientID, metadataDocument), ClientSecret: given.ClientSecret})
	return u, nil
}

func (u *conformingUser) close() {
	u.store.Close()
	_ = os.RemoveAll(u.dir)
}

// loginAsNeeded logs in until the server no longer requires a login, at most ten times.
func (u *conformingUser) loginAsNeeded(ctx context.Context, m *Manager) error {
	for range 10 {
		if status, _ := m.Status("s"); status.State != NeedsLogin {
			return nil
		}
		if err := u.account.Login(ctx, func(url string) { go u.visit(url) }); err != nil {
			return fmt.Errorf("login: %w", err)
		}
		if err := m.Connect(ctx, "s"); err != nil {
			fmt.Fprintln(os.Stderr, "connect:", err)
		}
	}
	return nil
}

// visit acts as the browser; the page of the login server redirects back at once.
func (u *conformingUser) visit(url string) {
	resp, err := u.browser.Get(url) //nolint:noctx // it ends with the process
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
