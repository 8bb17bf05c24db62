package daemon

import (
	"os"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
)

// storage is where what must survive is kept.
type storage struct {
	dir         string
	creds       *auth.Store
	serverCreds *auth.Store // of MCP servers
	artifacts   *artifact.Store
	undo        string // the folder
}

func newStorage(dir string, k auth.Keychain, now func() time.Time) *storage {
	return (&storage{
		dir: dir, creds: auth.New(dir, k), serverCreds: auth.New(filepath.Join(dir, "mcp"), k),
	}).withChats(dir, now)
}

// withChats returns the storage with what belongs to chats elsewhere.
func (s *storage) withChats(dir string, now func() time.Time) *storage {
	out := *s
	out.artifacts = artifact.New(filepath.Join(dir, "artifacts"), artifact.Options{Now: now})
	out.undo = filepath.Join(dir, "undo")
	return &out
}

// entered are the credentials that are stored now. An error is among the configuration's
// problems.
func (s *storage) entered() map[string]auth.Credential {
	all, _ := s.creds.All()
	return all
}

// CheckLogins says why the stored logins to providers cannot be used, and how to mend that.
func (s *services) CheckLogins() error {
	_, err := s.current().storage.creds.All()
	return err
}

// enteredForServers is entered for MCP servers.
func (s *storage) enteredForServers() map[string]auth.Credential {
	all, _ := s.serverCreds.All()
	return all
}

// storageIn returns the storage in a folder, which chats and calls are kept in from now on.
func (s *services) storageIn(dir string) *storage {
	s.store.Move(dir)
	s.calls.Move(dir)
	s.spending.Move(dir)
	return newStorage(dir, s.opts.Keychain, s.opts.Now)
}

// makeDiscarded makes the folder of what is not kept, which Close removes; empty if all is kept.
func makeDiscarded(o Options) string {
	if !o.Ephemeral {
		return ""
	}
	dir, err := os.MkdirTemp("", "eca-ephemeral-")
	if err != nil {
		o.Log.Error("no folder for what is not kept", "err", err)
	}
	return dir
}

// ephemeral has what chats leave behind go to the folder of what is not kept.
func (s *services) ephemeral(kept *storage) *storage {
	s.store.Move(s.discarded)
	s.calls.Move(s.discarded)
	return kept.withChats(s.discarded, s.opts.Now)
}
