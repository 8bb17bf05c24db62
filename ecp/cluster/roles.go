package cluster

import (
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// Roles of connections.
const (
	RoleController = "controller" // submits runs, leads and stops them
	RoleWorker     = "worker"     // makes attempts
	RoleViewer     = "viewer"     // reads
)

// inboxPrefix returns the prefix of the subjects on which a role gets answers. The roles have different
// ones, so that none can read the answers to another.
func inboxPrefix(role string) string {
	if role == "" {
		role = RoleController
	}
	return "_ecp_" + role
}

// Streams of the buckets.
const (
	runsStream     = "KV_" + runsBucket
	fixturesStream = "OBJ_" + fixturesBucket
	blobsStream    = "OBJ_" + blobsBucket
)

// RightsOf returns the rights of a role. Only a controller creates, purges or removes streams,
// publishes work, or writes documents of runs; it adds no results, and takes no work. A worker only
// adds results and blobs.
//
// Streams of results are named after their runs, and no pattern matches only them. Where a role needs
// a right on them, it has the right on all streams, except those that are denied.
func RightsOf(role string) jet.Rights {
	r := jet.Rights{Publish: []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.FC.>"}, Subscribe: []string{inboxPrefix(role) + ".>"}}
	for _, stream := range []string{runsStream, fixturesStream, blobsStream} {
		r.Publish = append(r.Publish, jet.ReadRights(stream)...)
	}
	switch role {
	case RoleController:
		r.Publish = append(r.Publish, controllerRights()...)
		for _, stream := range []string{workStream, planStream, runsStream, fixturesStream, blobsStream} {
			r.DenyPublish = append(r.DenyPublish, jet.API(stream, "STREAM.DELETE")...)
		}
		r.DenyPublish = append(r.DenyPublish, jet.API(workStream, "CONSUMER.MSG.NEXT >")...)
	case RoleWorker:
		r.Publish = append(r.Publish, "ecp.res.>", "$O."+blobsBucket+".>", "$JS.ACK."+workStream+".>", "$JS.API.DIRECT.GET.*.ecp.res.>")
		r.Publish = append(r.Publish, jet.API(workStream, "CONSUMER.INFO *", "CONSUMER.MSG.NEXT *")...)
	case RoleViewer:
		r.Publish = append(r.Publish, jet.API("*", "CONSUMER.CREATE >", "CONSUMER.INFO *", "CONSUMER.MSG.NEXT *", "CONSUMER.DELETE *")...)
		for _, stream := range []string{workStream, planStream} {
			r.DenyPublish = append(r.DenyPublish, jet.API(stream, "CONSUMER.CREATE >", "CONSUMER.DELETE >", "CONSUMER.MSG.NEXT >")...)
		}
	}
	return r
}

// controllerRights returns the subjects that only a controller publishes to.
func controllerRights() []string {
	out := []string{"ecp.work.>", "ecp.plan.*", "$KV." + runsBucket + ".>", "$O." + fixturesBucket + ".>", "$JS.ACK." + planStream + ".>"}
	for _, stream := range []string{workStream, planStream, runsStream, fixturesStream, blobsStream} {
		out = append(out, jet.SetupRights(stream)...)
	}
	for _, stream := range []string{workStream, planStream} {
		out = append(out, jet.API(stream, "STREAM.MSG.GET", "STREAM.PURGE")...)
	}
	out = append(out, jet.API(fixturesStream, "STREAM.PURGE")...)
	return append(out, jet.API("*", "STREAM.CREATE", "STREAM.DELETE", "DIRECT.GET", "DIRECT.GET >", "CONSUMER.CREATE >", "CONSUMER.INFO *", "CONSUMER.MSG.NEXT *", "CONSUMER.DELETE *")...)
}

// Keys are the public nkeys of roles.
type Keys map[string][]string

// roles returns the roles with their rights and keys.
func roles(keys Keys) (out []jet.Role) {
	for _, role := range []string{RoleController, RoleWorker, RoleViewer} {
		out = append(out, jet.Role{Name: role, Rights: RightsOf(role), Keys: keys[role]})
	}
	return out
}

// account is the name of the servers' account.
const account = "ECP"

// ServerConfig returns the part of a nats-server configuration that gives the roles their rights.
func ServerConfig(keys Keys) string { return jet.Accounts(account, roles(keys)) }

// WriteKeys writes an nkey for each role to a folder, and ServerConfig, whose path it returns. trust is
// the public key that workers have to trust.
func WriteKeys(dir string) (config, trust string, err error) {
	all := roles(nil)
	config, err = jet.WriteKeys(dir, account, all)
	if err != nil {
		return "", "", err
	}
	return config, all[0].Keys[0], nil
}

// NewKey creates an nkey. seed is the secret; public identifies the key to servers and workers.
func NewKey() (seed []byte, public string, err error) {
	key, err := jet.NewKey()
	if err != nil {
		return nil, "", err
	}
	seed, err = key.Seed()
	return seed, key.Public(), err
}
