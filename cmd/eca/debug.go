package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/server"
)

// debugPage shows developers of eca the state of a daemon: its chats, how many of their events have
// been shown to the client, its goroutines and profiles. It is read-only. It shows the ids of chats,
// but none of their text.
//
// It is off by default, listens only on this machine, and requires the token that its address
// contains. It does not use net/http/pprof, because that package also registers its profiles at
// http.DefaultServeMux.
type debugPage struct {
	started time.Time
	engine  *chat.Engine
	views   *server.Monitor
}

// serveDebug prints the address of the page, and serves it until stop is called.
func serveDebug(address string, page *debugPage, stderr io.Writer) (stop func(), err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" && !localhost.Is(host) {
		return nil, usage.Errorf("--debug must be an address of this machine, such as 127.0.0.1:0, not %q", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("--debug: %w; use port 0 for any free port", err)
	}
	address = listener.Addr().String()
	token := rand.Text()
	runtime.MemProfileRate = 512 << 10 // Go's default
	guard := httpguard.New(httpguard.Options{Address: address, Token: token}, httpguard.Pages{})
	serving := httpguard.NewServer(guard.TokenInPath(page.handler()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serving.Serve(listener) // returns when stop closes the server
	}()
	fmt.Fprintf(stderr, "eca: debug page: %s\n", &url.URL{Scheme: "http", Host: address, Path: httpguard.PathOf(token)})
	return func() {
		_ = serving.Close() // this also ends running profiles
		<-ended
	}, nil
}

func (p *debugPage) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.overview)
	mux.HandleFunc("GET /debug/pprof/{$}", p.overview) // go tool pprof looks here
	mux.HandleFunc("GET /debug/pprof/profile", cpuProfile)
	mux.HandleFunc("GET /debug/pprof/{name}", namedProfile)
	return mux
}

// overview serves the page.
func (p *debugPage) overview(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	const mega = 1 << 20
	fmt.Fprintf(w, "eca %s, %s %s/%s, process %d, up %s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, os.Getpid(), time.Since(p.started).Round(time.Second))
	fmt.Fprintf(w, "%d goroutines, %.1f MB in use, %.1f MB from the system, %d collections\n", runtime.NumGoroutine(), float64(memory.HeapAlloc)/mega, float64(memory.Sys)/mega, memory.NumGC)
	sessions, views := p.engine.Sessions(), p.views.Views()
	table := func(title string, rows int, head string, fill func(io.Writer)) {
		fmt.Fprintf(w, "\n%s: %d\n", title, rows)
		if rows == 0 {
			return
		}
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(out, head)
		fill(out)
		_ = out.Flush() // fails if the reader disconnected
	}
	table("Open chats", len(sessions), "chat\tstate\tnext event\tmodel", func(out io.Writer) {
		for _, s := range sessions {
			state := "idle"
			if s.Running() {
				state = "running"
			}
			fmt.Fprintf(out, "%s\t%s\t%d\t%s\n", printable(s.ID()), state, s.Next(), printable(s.Meta().Model))
		}
	})
	table("Views of the client", len(views), "chat\tshown before\tnext event\tlag", func(out io.Writer) {
		for _, v := range views {
			note := ""
			if v.Ended {
				note = " (ended)"
			}
			fmt.Fprintf(out, "%s\t%d\t%d\t%d%s\n", printable(v.ChatID), v.Position, v.Next, v.Lag(), note)
		}
	})
	fmt.Fprint(w, "\nProfiles, for go tool pprof; with ?debug=1 for people, goroutines also with ?debug=2:\ndebug/pprof/profile?seconds=30\n")
	for _, profile := range pprof.Profiles() {
		fmt.Fprintf(w, "debug/pprof/%s\n", profile.Name())
	}
}

// Durations of a CPU profile.
const (
	profileTime    = 30 * time.Second // the default
	maxProfileTime = 10 * time.Minute
)

// cpuProfile serves a CPU profile of the requested duration. It ends early if the client
// disconnects.
func cpuProfile(w http.ResponseWriter, r *http.Request) {
	length := profileTime
	if text := r.FormValue("seconds"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		length = time.Duration(seconds * float64(time.Second))
		if err != nil || !(seconds > 0) || length > maxProfileTime {
			http.Error(w, fmt.Sprintf("seconds must be a number between 0 and %.0f", maxProfileTime.Seconds()), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := pprof.StartCPUProfile(w); err != nil { // another profile is running
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.Error(w, err.Error()+"; try again when it has ended", http.StatusConflict)
		return
	}
	defer pprof.StopCPUProfile()
	ctx, cancel := context.WithTimeout(r.Context(), length)
	defer cancel()
	<-ctx.Done()
}

// namedProfile serves a profile of runtime/pprof, such as heap or goroutine.
func namedProfile(w http.ResponseWriter, r *http.Request) {
	profile := pprof.Lookup(r.PathValue("name"))
	if profile == nil {
		http.Error(w, "there is no such profile", http.StatusNotFound)
		return
	}
	debug, err := strconv.Atoi(r.FormValue("debug"))
	if err != nil && r.FormValue("debug") != "" {
		http.Error(w, "debug must be a number", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_ = profile.WriteTo(w, debug) // fails if the reader disconnected
}
