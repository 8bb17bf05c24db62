package service

import (
	"context"
	"log/slog"

	"github.com/seed-dec29ce4/eca/internal/jet"
)

// Roles of connections to NATS.
const (
	RoleServer = "server" // accepts and cancels jobs, and runs them
	RoleWorker = "worker" // runs jobs
)

// inboxPrefix returns the prefix of the subjects on which a role gets answers. No role can read the
// answers to another.
func inboxPrefix(role string) string { return "_esrp_" + role }

// roles returns the roles with their rights. Only a server creates the service's streams, and accepts
// or cancels jobs; it can neither purge nor remove jobs, nor use other streams. A worker takes jobs,
// and adds their events and outputs.
func roles() []jet.Role {
	const outputs = "OBJ_" + bucketName
	server := []string{"esrp.job.>", "esrp.stop.*", "$JS.API.INFO", "$JS.FC.>", "$O." + bucketName + ".>"}
	server = append(server, jet.API(outputs, "STREAM.PURGE")...)
	for _, stream := range []string{streamName, outputs} {
		server = append(server, jet.SetupRights(stream)...)
		server = append(server, jet.ReadRights(stream)...)
	}
	worker := []string{"$JS.API.INFO", "$JS.FC.>", "$O." + bucketName + ".>", "$JS.ACK." + streamName + "." + consumerName + ".>"}
	worker = append(worker, jet.API(streamName, "STREAM.INFO", "STREAM.MSG.GET", "DIRECT.GET", "DIRECT.GET >", "CONSUMER.INFO "+consumerName, "CONSUMER.MSG.NEXT "+consumerName)...)
	worker = append(worker, jet.ReadRights(outputs)...)
	for _, kind := range []string{kindStarted, kindProgress, kindArtifact, kindReleased, kindCompleted, kindFailed} {
		worker = append(worker, "esrp.job.*.*."+kind)
	}
	return []jet.Role{
		{Name: RoleServer, Rights: jet.Rights{Publish: server, Subscribe: []string{inboxPrefix(RoleServer) + ".>", "esrp.stop.*"}}},
		{Name: RoleWorker, Rights: jet.Rights{Publish: worker, Subscribe: []string{inboxPrefix(RoleWorker) + ".>", "esrp.stop.*"}}},
	}
}

// WriteKeys writes an nkey for each role to a folder, and the configuration with their rights for the
// NATS servers, whose path it returns.
func WriteKeys(dir string) (config string, err error) { return jet.WriteKeys(dir, "ESRP", roles()) }

// Access describes the connection to a NATS cluster.
type Access struct {
	URL     string // of one or more servers, separated by commas
	Token   string // empty if the URL has credentials, or with a key
	KeyFile string // file with an nkey; empty for none
	Role    string // of the nkey: RoleServer or RoleWorker
	CA      string // file with the certificate authorities of the servers; empty uses the system's
}

// Dial connects to NATS, and waits for the first connection until ctx ends. It returns an error if
// NATS refuses the credentials.
func Dial(ctx context.Context, a Access, log *slog.Logger) (*jet.Conn, error) {
	o := jet.Options{URL: a.URL, Name: "esrp", Token: a.Token, CA: a.CA, Wait: true, Log: log}
	if a.KeyFile != "" {
		seed, err := jet.ReadSeed(ctx, a.KeyFile)
		if err != nil {
			return nil, err
		}
		if o.Key, err = jet.ParseKey(seed); err != nil {
			return nil, err
		}
		o.Token, o.Inbox = "", inboxPrefix(a.Role)
	}
	return jet.Dial(ctx, o)
}
