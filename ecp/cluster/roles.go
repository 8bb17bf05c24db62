package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/jet"
)

// Roles of connections.
const (
	RoleController = "controller" // submits runs, leads and stops them
	RoleWorker     = "worker"     // makes attempts
	RoleViewer     = "viewer"     // reads
)

// Rights are the subjects that a role may publish to and subscribe to.
type Rights struct {
	Publish, DenyPublish, Subscribe []string
}

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
func RightsOf(role string) Rights {
	r := Rights{Subscribe: []string{inboxPrefix(role) + ".>"}}
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

// ServerConfig returns the part of a nats-server configuration that gives the roles their rights.
func ServerConfig(keys Keys) string {
	var b strings.Builder
	b.WriteString("accounts {\n  ECP {\n    jetstream: enabled\n    users: [\n")
	for _, role := range []string{RoleController, RoleWorker, RoleViewer} {
		rights := RightsOf(role)
		for _, key := range keys[role] {
			fmt.Fprintf(&b, "      # %s\n      {nkey: %s, permissions: {publish: {allow: %s", role, key, quotedList(rights.Publish))
			if len(rights.DenyPublish) > 0 {
				fmt.Fprintf(&b, ", deny: %s", quotedList(rights.DenyPublish))
			}
			fmt.Fprintf(&b, "}, subscribe: {allow: %s}}}\n", quotedList(rights.Subscribe))
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

// NewKey creates an nkey. seed is the secret; public identifies the key to servers and workers.
func NewKey() (seed []byte, public string, err error) {
	key, err := jet.NewKey()
	if err != nil {
		return nil, "", err
	}
	seed, err = key.Seed()
	return seed, key.Public(), err
}
