package daemon

import (
	"os"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
)

// storage is where lasting data is stored.
type storage struct {
	dir         string
	creds       *auth.Store
	serverCreds *auth.Store // logins to MCP servers
	artifacts   *artifact.Store
	undo        string // folder of undo data
}

func newStorage(dir string, k auth.Keychain, now func() time.Time) *storage {
	return (&storage{
		dir: dir, creds: auth.New(dir, k), serverCreds: auth.New(filepath.Join(dir, "mcp"), k),
	}).withChats(dir, now)
}

// withChats returns a copy of the storage that keeps the data of chats in another folder.
func (s *storage) withChats(dir string, now func() time.Time) *storage {
	out := *s
	out.artifacts = artifact.New(filepath.Join(dir, "artifacts"), artifact.Options{Now: now})
	out.undo = filepath.Join(dir, "undo")
	return &out
}

// credentials returns the stored credentials. An error is among the configuration's problems.
func (s *storage) credentials() map[string]auth.Credential {
	all, _ := s.creds.All()
	return all
}

// CheckLogins returns an error that says why the stored logins to providers cannot be used, and how
// to fix that.
func (s *services) CheckLogins() error {
	_, err := s.current().storage.creds.All()
	return err
}

// serverCredentials is like credentials, for MCP servers.
func (s *storage) serverCredentials() map[string]auth.Credential {
	all, _ := s.serverCreds.All()
	return all
}

// storageIn returns storage in a folder, and makes chats, the journal and the budget use that
// folder from now on.
func (s *services) storageIn(dir string) *storage {
	s.store.Move(dir)
	s.journal.Move(dir)
	s.spending.Move(dir)
	return newStorage(dir, s.opts.Keychain, s.opts.Now)
}

// makeEphemeralDir creates the folder of --ephemeral, which Close removes. Without --ephemeral it
// returns "".
func makeEphemeralDir(o Options) string {
	if !o.Ephemeral {
		return ""
	}
	dir, err := os.MkdirTemp("", "eca-ephemeral-")
	if err != nil {
		o.Log.Error("cannot create the folder of --ephemeral", "err", err)
	}
	return dir
}

// ephemeral makes the data of chats go to the folder of --ephemeral.
func (s *services) ephemeral(kept *storage) *storage {
	s.store.Move(s.ephemeralDir)
	s.journal.Move(s.ephemeralDir)
	return kept.withChats(s.ephemeralDir, s.opts.Now)
}
