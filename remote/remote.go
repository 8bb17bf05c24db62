// Package remote serves the chats of a daemon over HTTP: the API and the event stream of the
// reference's remote server, for its web client, and eca's own page.
//
// Each stream, and the hub that carries out requests, is a client of the ECA protocol in this
// process, as an editor is. Pages therefore show the same as editors. The id of an event contains, for
// each chat that the stream has shown, the position in its log after the event. A client that connects
// again with this id gets exactly the events that it missed, also from another process.
//
// Guarantees: requests for unknown hosts, from unknown origins (package httpguard), or without the
// token of a paired device or the password are refused. Without a certificate or remote.bindHost, only
// this machine can connect. No answer, redirect or log contains a token or the password. A client that
// does not read delays only its own stream.
//
// It does not keep chats running when the editor ends. It makes no connections of its own, unless the
// user turns on remote.push and a device subscribes to notifications.
//
// The entry points are New, Face.Run, and Devices for the commands.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
)

// Options configure a Face.
type Options struct {
	Engine *chat.Engine
	Models Models
	Config func() *config.Loaded
	// Watch calls changed after each change of the configuration, until ctx ends.
	Watch func(ctx context.Context, changed func())
	Roots func() []string
	// Serve serves one more client of the ECA protocol, with server.Options.Follow, until ctx ends.
	// period returns the time between two pieces of a growing text.
	Serve func(ctx context.Context, r io.Reader, w io.Writer, period func() time.Duration) error
	// Page returns the handler of the chat page. It is called once; the handler works until ctx ends.
	Page func(ctx context.Context, g Gate) http.Handler
	// Limit limits how many connections a listener accepts.
	Limit func(net.Listener) net.Listener
	// Push sends notifications to the push services of browsers.
	Push     PushService
	StateDir string
	Version  string
	Log      *slog.Logger
	Now      func() time.Time // default: time.Now
}

// Gate decides which messages of the chat page are allowed. A device is identified by its token.
type Gate interface {
	// Admit reports whether a token is that of a device. It throttles addresses that send wrong tokens.
	Admit(remoteAddress, token string) bool
	// Allow returns the params with which the device may send a message; ok is false if it may not send
	// the message.
	Allow(token, method string, params []byte) (allowed []byte, ok bool)
	// Question returns the params of a question for the device; ok is false if the device does not get
	// the question.
	Question(token string, params []byte) (shown []byte, ok bool)
	// MayAnswer reports whether the device may give an answer to a question with these params.
	MayAnswer(token string, params, answer []byte) bool
}

// Face is the remote server.
type Face struct {
	opts         Options
	devices      *Devices
	throttle     *throttle
	rights       map[string]Rights // that the page needs for a message
	questions    questions
	pushes       pushes
	replays      semaphore // held while a stream shows a chat from its beginning
	started      time.Time
	shuttingDown atomic.Bool
	work         sync.WaitGroup

	ctx context.Context // of Run
	hub *hub

	mu       sync.Mutex // guards the fields below
	streams  []*stream
	trusting map[string]bool // devices whose prompts turn on auto-approve
	status   status
}

// status describes the server to users.
type status struct {
	url          string // empty if the server is not running
	problem      string // why the server is not running
	warnings     []string
	openToOthers bool   // other machines can connect
	notice       string // a message for the editor; empty without one
}

// New returns a Face that is not running yet.
func New(o Options) *Face {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Face{
		opts: o, devices: OpenDevices(o.StateDir, o.Now), throttle: &throttle{now: o.Now}, started: o.Now(), trusting: map[string]bool{},
		replays: make(semaphore, maxReplays), rights: messageRights(),
	}
}

// Run serves until ctx ends. It calls started when the server is listening or has failed to. Changes
// of the configuration take effect while it runs.
func (f *Face) Run(ctx context.Context, started func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer f.work.Wait()
	defer cancel()
	f.ctx = ctx
	reportStarted := sync.OnceFunc(started)
	defer reportStarted()
	hub, err := f.newHub(ctx)
	if err != nil {
		f.fail(err)
		return
	}
	f.hub = hub
	defer hub.close()
	defer notifier{f}.notifyDevices(ctx)()
	handler := f.handler()
	changed := make(chan struct{}, 1)
	f.work.Go(func() {
		f.opts.Watch(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	for ctx.Err() == nil {
		cfg := f.opts.Config().Remote
		stop := f.listen(cfg, handler)
		reportStarted()
		for same := true; same; {
			select {
			case <-changed:
				same = reflect.DeepEqual(cfg, f.opts.Config().Remote)
			case <-ctx.Done():
				same = false
				f.shuttingDown.Store(true)
			}
		}
		stop()
	}
}

// fail records why the server is not running.
func (f *Face) fail(err error) {
	f.opts.Log.Error("remote: the server does not run", "err", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status{problem: err.Error(), notice: "The remote server does not run: " + err.Error() + "."}
}

// listen serves with a configuration until stop is called. If it cannot listen, the status contains
// the reason.
func (f *Face) listen(cfg config.Remote, handler http.Handler) (stop func()) {
	noop := func() {}
	if !cfg.Enabled {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.status = status{problem: "remote.enabled is off"}
		return noop
	}
	plan, roots := PlanFor(cfg, f.opts.Now()), f.opts.Roots()
	last := f.devices.lastPort(roots)
	listener, err := plan.listen(cfg.Port, last)
	if err != nil {
		f.fail(f.listenError(cfg.Port, err))
		return noop
	}
	port, movedNotice := listener.Addr().(*net.TCPAddr).Port, ""
	if cfg.Port == 0 && last != 0 && port != last {
		movedNotice = fmt.Sprintf("The remote server of this editor is at port %d: port %d, which this workspace had, is used by %s.", port, last, f.portUser(last))
		plan.Warnings = append(plan.Warnings, movedNotice)
	}
	guard := httpguard.New(
		httpguard.Options{Address: listener.Addr().String(), Origins: origins(cfg), Hosts: plan.Hosts, OwnTokens: true},
		httpguard.Pages{Own: true, Served: true, Methods: "GET, POST, DELETE", Headers: "Content-Type, Authorization, Last-Event-ID"},
	)
	server := httpguard.NewServer(withGuard(guard, handler))
	server.ErrorLog = slog.NewLogLogger(f.opts.Log.Handler(), slog.LevelDebug) // scans and broken handshakes
	limited := f.opts.Limit(listener)
	if plan.cert != nil {
		server.TLSConfig = plan.cert.config()
		limited = tls.NewListener(limited, server.TLSConfig)
	}
	url := plan.URL(cfg, port)
	f.mu.Lock()
	f.status = status{url: url, warnings: plan.Warnings, openToOthers: plan.OpenToOthers(), notice: movedNotice}
	f.mu.Unlock()
	if err := f.devices.recordEndpoint(Endpoint{Roots: roots, URL: url, Port: port, PID: os.Getpid()}); err != nil {
		f.opts.Log.Warn("remote: the address is not recorded for `eca remote pair`", "err", err)
	}
	f.opts.Log.Info("remote: serving", "url", url, "beyond this machine", plan.OpenToOthers())
	for _, w := range plan.Warnings {
		f.opts.Log.Warn("remote: " + w)
	}
	serveEnded := make(chan struct{})
	f.work.Go(func() {
		defer close(serveEnded)
		if err := server.Serve(limited); err != nil && !errors.Is(err, http.ErrServerClosed) {
			f.fail(err)
		}
	})
	return func() {
		const shutdownTime = 2 * time.Second
		shutdownCtx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		f.mu.Lock()
		for _, s := range f.streams {
			s.end()
		}
		f.mu.Unlock()
		if server.Shutdown(shutdownCtx) != nil {
			_ = server.Close()
		}
		<-serveEnded
		if err := f.devices.recordEndpoint(Endpoint{Roots: roots, URL: url, Port: port}); err != nil {
			f.opts.Log.Warn("remote: the port is not kept for the next start", "err", err)
		}
	}
}

// listenError returns the error for a port at which the server cannot listen; port 0 means that all
// usual ports were tried.
func (f *Face) listenError(port int, err error) error {
	switch {
	case !errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen: %w", err)
	case port == 0:
		return fmt.Errorf("the ports from %d to %d are in use; set remote.port to a free one", firstPort, lastPort)
	}
	return fmt.Errorf("port %d is used by %s; end that, or set remote.port to a free port", port, f.portUser(port))
}

// portUser names who uses a port.
func (f *Face) portUser(port int) string {
	list, _ := f.devices.Endpoints()
	for _, e := range slices.Backward(list) {
		if e.Port == port && e.PID != 0 {
			return fmt.Sprintf("the eca of another editor (process %d, in %s)", e.PID, strings.Join(e.Roots, ", "))
		}
	}
	return "another program"
}

// Notice returns a message for the user about the start of the server, or an empty text.
func (f *Face) Notice() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status.notice
}

// origins lists the origins of other web pages that may call the server.
func origins(cfg config.Remote) []string {
	if cfg.Origins != nil {
		return cfg.Origins
	}
	return []string{"https://web.eca.dev"}
}

// withGuard checks the host and the origin of requests before next serves them.
func withGuard(guard *httpguard.Guard, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		done, refused := guard.Admit(w, r)
		switch {
		case refused != nil:
			(&failure{refused.Status, "forbidden", refused.Message}).write(w)
		case !done:
			next.ServeHTTP(w, r)
		}
	})
}

// handler serves the API, and the page at all other paths.
func (f *Face) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/api/", api{f}.handler())
	page := sync.OnceValue(func() http.Handler { return f.opts.Page(f.ctx, f) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { page().ServeHTTP(w, r) })
	return mux
}

// trusts reports whether the prompts of a device turn on auto-approve.
func (f *Face) trusts(deviceID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trusting[deviceID]
}

func (f *Face) setTrust(deviceID string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trusting[deviceID] = on
}

// Status describes in Markdown how to connect, without a token or the password.
func (f *Face) Status() string {
	if !f.opts.Config().Remote.Enabled {
		return "The remote server does not run. Set `remote.enabled` to `true` in your configuration and restart the editor; see docs/remote.md."
	}
	f.mu.Lock()
	s, streams := f.status, len(f.streams)
	f.mu.Unlock()
	switch {
	case s.url == "" && s.problem == "":
		return "The remote server is starting. Ask again in a moment."
	case s.url == "":
		return "The remote server does not run: " + s.problem + "."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Open %s in a browser.\n\n", s.url)
	if !s.openToOthers {
		b.WriteString("Only this machine can connect. For others, use an SSH tunnel or a VPN's proxy, or set `remote.tls` or `remote.bindHost`.\n\n")
	}
	b.WriteString("Each device needs a token: run `eca remote pair` in a terminal.")
	if f.opts.Config().Remote.Password != "" {
		b.WriteString(" `remote.password` works as well.")
	}
	fmt.Fprintf(&b, "\n\n%s connected.\n", doctor.Count(streams, "stream"))
	for _, w := range s.warnings {
		fmt.Fprintf(&b, "\n⚠️ %s\n", w)
	}
	return b.String()
}

// Check reports for eca doctor which machines can connect, and how many devices are paired.
func (f *Face) Check(context.Context) []doctor.Finding {
	cfg := f.opts.Config().Remote
	if !cfg.Enabled {
		return []doctor.Finding{doctor.Found(doctor.Note, "remote", "off")}
	}
	plan := PlanFor(cfg, f.opts.Now())
	where := "this machine only"
	switch {
	case plan.OpenToOthers() && plan.TLS():
		where = "other machines, over TLS"
	case plan.OpenToOthers():
		where = "other machines, without TLS"
	}
	out := []doctor.Finding{doctor.Found(doctor.Note, "remote", "can be reached from %s", where)}
	for _, w := range plan.Warnings {
		out = append(out, doctor.Found(doctor.Warning, "remote", "%s", w))
	}
	list, err := f.devices.List()
	if err != nil {
		return append(out, doctor.Found(doctor.Warning, "remote", "%v", err))
	}
	out = append(out, doctor.Found(doctor.Note, "remote", "%s paired", doctor.Count(len(list), "device")))
	if cfg.Push {
		subscribed := slices.DeleteFunc(list, func(dev Device) bool { return len(dev.Push) == 0 })
		out = append(out, doctor.Found(doctor.Note, "remote", "notifications: %s subscribed", doctor.Count(len(subscribed), "device")))
	}
	return out
}
