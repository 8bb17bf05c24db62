package jet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Role is a kind of client, with the rights that servers enforce.
type Role struct {
	Name   string
	Rights Rights
	Keys   []string // public nkeys
}

// Rights are the subjects that a role may publish to and subscribe to.
type Rights struct {
	Publish, DenyPublish, Subscribe []string
}

// API returns the subjects of operations of JetStream's API on a stream. An operation may be
// followed by a space and the name of an object.
func API(stream string, operations ...string) (subjects []string) {
	for _, operation := range operations {
		operation, object, ok := strings.Cut(operation, " ")
		if ok {
			object = "." + object
		}
		subjects = append(subjects, "$JS.API."+operation+"."+stream+object)
	}
	return subjects
}

// ReadRights returns the subjects with which a client reads and follows a stream, or the stream of a
// bucket.
func ReadRights(stream string) []string {
	return append(API(stream, "STREAM.INFO", "STREAM.MSG.GET", "DIRECT.GET", "DIRECT.GET >",
		"CONSUMER.CREATE >", "CONSUMER.INFO >", "CONSUMER.MSG.NEXT >", "CONSUMER.DELETE >"), "$JS.ACK."+stream+".>")
}

// SetupRights returns the subjects with which a client creates a stream and increases its replicas.
func SetupRights(stream string) []string { return API(stream, "STREAM.CREATE", "STREAM.UPDATE") }

// Accounts returns the part of a nats-server configuration that gives the roles of an account their
// rights.
func Accounts(account string, roles []Role) string {
	var b strings.Builder
	fmt.Fprintf(&b, "accounts {\n  %s {\n    jetstream: enabled\n    users: [\n", account)
	for _, role := range roles {
		for _, key := range role.Keys {
			fmt.Fprintf(&b, "      # %s\n      {nkey: %s, permissions: {publish: {allow: %s", role.Name, key, quotedList(role.Rights.Publish))
			if len(role.Rights.DenyPublish) > 0 {
				fmt.Fprintf(&b, ", deny: %s", quotedList(role.Rights.DenyPublish))
			}
			fmt.Fprintf(&b, "}, subscribe: {allow: %s}}}\n", quotedList(role.Rights.Subscribe))
		}
	}
	b.WriteString("    ]\n  }\n}\n")
	return b.String()
}

func quotedList(subjects []string) string {
	out := slices.Clone(subjects)
	for i := range out {
		out[i] = `"` + out[i] + `"`
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// WriteKeys creates an nkey for each role, adds it to the role's Keys, and writes it to ROLE.nk in a
// folder. It writes Accounts to accounts.conf there, and returns the path of that file. Only the user
// can read the files.
func WriteKeys(dir, account string, roles []Role) (config string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for i := range roles {
		key, err := NewKey()
		if err != nil {
			return "", err
		}
		seed, err := key.Seed()
		if err != nil {
			return "", err
		}
		roles[i].Keys = append(roles[i].Keys, key.Public())
		if err := writeNew(filepath.Join(dir, roles[i].Name+".nk"), append(seed, '\n')); err != nil {
			return "", err
		}
	}
	config = filepath.Join(dir, "accounts.conf")
	return config, writeNew(config, []byte(Accounts(account, roles)))
}

// writeNew writes a new file that only the user can read.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w; it is not overwritten: choose another folder", err)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// maxSeed bounds the file of an nkey, in bytes.
const maxSeed = 64 << 10

// ReadSeed reads a file with an nkey, which may be a stream (see safeio.ReadInput). It refuses a
// file that other users can read.
func ReadSeed(ctx context.Context, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		return nil, fmt.Errorf("other users can read %s: run chmod 600 on it", path)
	}
	text, err := safeio.ReadInput(ctx, path, maxSeed)
	return []byte(strings.TrimSpace(string(text))), err
}
