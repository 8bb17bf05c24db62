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

// RightsOf returns the rights of a role. Only a controller creates, purges or removes streams,
// publishes work, or writes documents of runs. A worker only adds results and blobs.
func RightsOf(role string) jet.Rights {
	r := jet.Rights{Subscribe: []string{inboxPrefix(role) + ".>"}}
	if role == RoleController {
		r.Publish = []string{"ecp.work.>", "ecp.plan.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV." + runsBucket + ".>", "$O." + fixturesBucket + ".>"}
		return r
	}
	r.Publish = []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.FC.>", "$JS.API.DIRECT.GET.KV_" + runsBucket + ".>"}
	readable := []string{"KV_" + runsBucket, "OBJ_" + fixturesBucket, "OBJ_" + blobsBucket}
	for _, stream := range readable {
		r.Publish = append(r.Publish, "$JS.API.CONSUMER.CREATE."+stream+".>", "$JS.API.CONSUMER.INFO."+stream+".>", "$JS.API.CONSUMER.MSG.NEXT."+stream+".>", "$JS.API.CONSUMER.DELETE."+stream+".>", "$JS.API.DIRECT.GET."+stream+".>", "$JS.API.STREAM.MSG.GET."+stream, "$JS.ACK."+stream+".>")
	}
	if role == RoleWorker {
		r.Publish = append(r.Publish, "ecp.res.>", "$O."+blobsBucket+".>",
			"$JS.API.CONSUMER.INFO."+workStream+".*", "$JS.API.CONSUMER.MSG.NEXT."+workStream+".*", "$JS.ACK."+workStream+".>",
			"$JS.API.DIRECT.GET.*.ecp.res.>")
		return r
	}
	// Streams of results are named after their runs, and no pattern matches only them.
	r.Publish = append(r.Publish, "$JS.API.CONSUMER.CREATE.*.>", "$JS.API.CONSUMER.INFO.*.*", "$JS.API.CONSUMER.MSG.NEXT.*.*", "$JS.API.CONSUMER.DELETE.*.*")
	for _, stream := range []string{workStream, planStream} {
		r.DenyPublish = append(r.DenyPublish, "$JS.API.CONSUMER.*."+stream+".>", "$JS.API.CONSUMER.MSG.NEXT."+stream+".>")
	}
	return r
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
