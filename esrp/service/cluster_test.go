package service

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// node starts a NATS server with JetStream.
func node(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	o.JetStream, o.StoreDir, o.Authorization = true, t.TempDir(), token
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// clusterOf starts NATS servers that form a cluster.
func clusterOf(t *testing.T, nodes int) []*server.Server {
	t.Helper()
	ports := testkit.FreePorts(t, nodes)
	var routes []*url.URL
	for _, port := range ports {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	var out []*server.Server
	for n, port := range ports {
		out = append(out, node(t, server.Options{
			ServerName: fmt.Sprint("node", n), Routes: routes,
			Cluster: server.ClusterOpts{Name: "esrp", Host: "127.0.0.1", Port: port},
		}))
	}
	for _, s := range out {
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("the cluster does not start")
		}
	}
	return out
}

// addresses lists all nodes in one URL, in the form that clients use.
func addresses(nodes []*server.Server) string {
	var out []string
	for _, n := range nodes {
		u, err := url.Parse(n.ClientURL())
		if err != nil {
			panic(err)
		}
		u.User = url.User(token)
		out = append(out, u.String())
	}
	return strings.Join(out, ",")
}

// A service and two workers use a cluster of three nodes. The node that leads the stream stops while
// jobs run, and every job still completes exactly once.
func TestClusterLosesANode(t *testing.T) {
	needs.Long(t)
	nodes, ops := clusterOf(t, 3), newEcho()
	o := options(t.TempDir(), ops)
	o.NATS.URL, o.Lease = addresses(nodes), 3*time.Second
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		nc, err := Dial(t.Context(), o.NATS, discardLogger())
		if err != nil {
			t.Fatal(err)
		}
		defer NewWorker(nc, WorkerOptions{Operations: ops, Log: discardLogger()}).Close()
	}
	var ids []string
	for i := range 100 {
		operation := "echo"
		if i < 4 {
			operation = "hold" // these run when the node stops
		}
		ids = append(ids, submit(t, s, request(operation, fmt.Sprint("job ", i), asyncMode, "")))
	}
	for _, id := range ids[:4] {
		waitForEvent(t, s, id, "holding")
	}
	nc, err := nats.Connect(o.NATS.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), streamName)
	if err != nil {
		t.Fatal(err)
	}
	info := stream.CachedInfo()
	if info.Config.Replicas != 3 || info.Cluster == nil || info.Cluster.Leader == "" {
		t.Fatalf("the stream of jobs has %d replicas, want 3; %+v", info.Config.Replicas, info.Cluster)
	}
	for _, n := range nodes {
		if n.Name() == info.Cluster.Leader {
			n.Shutdown()
			n.WaitForShutdown()
		}
	}
	close(ops.hold)
	waitAllSucceededOnce(t, s, ids)
}

// Dial returns an error if NATS refuses the client, if the URL is invalid, and when its context ends
// while there is no server.
func TestDial(t *testing.T) {
	alone := node(t, server.Options{})
	if !alone.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	if nc, err := Dial(t.Context(), Access{URL: alone.ClientURL(), Token: "wrong"}, discardLogger()); err == nil || !strings.Contains(strings.ToLower(err.Error()), "authorization") {
		t.Errorf("connected %v, %v", nc, err)
	}
	if _, err := Dial(t.Context(), Access{URL: "nats://%zz"}, discardLogger()); err == nil {
		t.Error("Dial accepted an invalid URL")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, Access{URL: "nats://127.0.0.1:1"}, discardLogger()); err == nil || !strings.Contains(err.Error(), "connect to NATS") {
		t.Errorf("after its context ended, Dial returned %v", err)
	}
	o := options(t.TempDir(), newEcho())
	o.NATSListen = strings.TrimPrefix(alone.ClientURL(), "nats://")
	if s, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Open at the address of another server, %s: %v, %v", o.NATSListen, s, err)
	}
}

// A service that ran alone can accept workers from its next start on, and run alone again. Jobs from
// before stay, and later ones run.
func TestAcceptsWorkersLater(t *testing.T) {
	ops := newEcho()
	o := options(t.TempDir(), ops)
	ids := []string{}
	for i, listen := range []string{"", "127.0.0.1:0", "", "127.0.0.1:0", "127.0.0.1:0"} {
		o.NATSListen = listen
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		w, err := s.Worker(t.Context(), WorkerOptions{Operations: ops, Log: o.Log})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, submit(t, s, request("echo", fmt.Sprint("job ", i), asyncMode, "")))
		waitAllSucceededOnce(t, s, ids)
		w.Close()
		s.Close()
	}
}
