// Package embed runs a NATS server with JetStream in this process. It is a separate package so that
// programs that use only the client do not link the server.
//
// It owns the folder of the server's files: a second server for the same folder fails with
// ErrInUse. A message is on disk before it is acknowledged. Servers do not form clusters. Entry
// point: Start.
package embed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/seed-dec29ce4/eca/internal/filelock"
)

// Options of a server.
type Options struct {
	Name   string
	Dir    string // of its files; created if it is missing
	Token  string // required from clients
	Listen string // host:port for clients of other processes; empty means only this process
}

// maxMessage is the maximum size of a message, in bytes.
const maxMessage = 8 << 20

// startTime is how long a server may take to start on a busy machine.
const startTime = 30 * time.Second

// ErrInUse means that another process is using the folder.
var ErrInUse = errors.New("it is in use")

// Server is a running server. The caller must call Close.
type Server struct {
	s      *server.Server
	listen bool
	unlock func()
}

// Start starts a server. Each message is synced to the disk before it is acknowledged.
func Start(o Options) (*Server, error) {
	opts := &server.Options{
		ServerName: o.Name, JetStream: true, StoreDir: o.Dir, SyncAlways: true,
		Authorization: o.Token, MaxPayload: maxMessage,
		DontListen: o.Listen == "", NoSigs: true, NoLog: true,
	}
	if err := listen(opts, o.Listen); err != nil {
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	unlock, locked, err := filelock.Try(filepath.Join(o.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrInUse)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		unlock()
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	out := &Server{s, o.Listen != "", unlock}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		out.Close()
		return nil, fmt.Errorf("embedded NATS does not start; check that it can listen at %q", o.Listen)
	}
	return out, nil
}

// listen configures the listening address.
func listen(opts *server.Options, address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if opts.Port, err = strconv.Atoi(port); err != nil {
		return fmt.Errorf("port %q is not a number", port)
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if opts.Host = host; host == "" {
		opts.Host = "127.0.0.1"
	}
	// For an address in use, NATS would report nothing and retry for half a minute.
	probe, err := net.Listen("tcp", net.JoinHostPort(opts.Host, port))
	if err != nil {
		return err
	}
	return probe.Close()
}

// InProcessConn connects without a network; see jet.Options.
func (s *Server) InProcessConn() (net.Conn, error) { return s.s.InProcessConn() }

// Address returns the listening address; empty if the server does not listen.
func (s *Server) Address() string {
	if !s.listen {
		return ""
	}
	return s.s.Addr().String()
}

// Close stops the server.
func (s *Server) Close() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
	s.unlock()
}
