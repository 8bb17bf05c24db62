package bounds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/egress"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/shell"
)

// maxLoopbacks limits how many chats have a network namespace. If there are more, the least
// recently used one is closed: processes that run in it keep their loopback interface, but lose the
// proxy.
const maxLoopbacks = 16

// loopbacks are the network namespaces of chats.
type loopbacks struct {
	mu     sync.Mutex  // guards the fields below
	chats  []*loopback // least recently used first
	closed bool
}

// loopback is the network namespace of a chat, and the proxy through which its processes reach
// other hosts.
type loopback struct {
	chatID string
	ports  []int

	start   sync.Once // guards the fields below
	openErr error     // why it is not open
	network *proc.Network
	pool    *proc.Pool
	proxy   *egress.Proxy
	serving sync.WaitGroup
}

// close closes a loopback. Running children continue.
func (l *loopback) close() {
	l.start.Do(func() { l.openErr = errors.New("eca is shutting down") })
	if l.openErr != nil {
		return
	}
	l.pool.Close()
	l.network.Close()
	l.serving.Wait()
	l.proxy.Close()
}

func (l *loopbacks) close() {
	l.mu.Lock()
	all := l.chats
	l.chats, l.closed = nil, true
	l.mu.Unlock()
	for _, chat := range all {
		chat.close()
	}
}

// JoinNetwork lets a child whose network is only a loopback interface share the one of its chat,
// where it can also connect to the given addresses. If that fails, the child gets its own.
func (b *Bounds) JoinNetwork(call tools.Call, spec *proc.Spec, addresses []string) *shell.Connection {
	if spec.Sandbox.Level != sandbox.Workspace || !spec.Sandbox.Loopback || call.ChatID == "" {
		return nil
	}
	l, err := b.loopback(call.ChatID, ports(b.opts.Config()))
	if err != nil {
		b.opts.Log.Warn("cannot share a loopback between the commands of a chat", "err", err)
		return nil
	}
	spec.Sandbox.Joined = true
	client := l.proxy.NewClient(addresses)
	spec.Env = append(spec.Env, proxyVariables(client.URL())...)
	return &shell.Connection{Children: l.pool, Close: client.Close, Refused: func() (unlisted, private []string) {
		for _, r := range client.Refused() {
			if r.Unlisted {
				unlisted = append(unlisted, r.Address)
			} else {
				private = append(private, r.Address)
			}
		}
		return unlisted, private
	}}
}

// loopback returns the loopback of a chat. The first command that needs it opens it; the chat's
// other commands wait for that, and other chats do not.
func (b *Bounds) loopback(chatID string, ports []int) (*loopback, error) {
	l, replaced, err := b.loopbacks.find(chatID, ports)
	for _, old := range replaced {
		old.close()
	}
	if err != nil {
		return nil, err
	}
	l.start.Do(func() { l.openErr = l.open(b.opts) })
	if l.openErr != nil {
		b.loopbacks.remove(l) // the next command tries again
	}
	return l, l.openErr
}

// find returns the loopback of a chat, which may not be open yet, and those that have to be closed:
// one with other ports, and the one that was used least recently if there are too many.
func (l *loopbacks) find(chatID string, ports []int) (current *loopback, replaced []*loopback, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, errors.New("eca is shutting down")
	}
	if i := slices.IndexFunc(l.chats, func(l *loopback) bool { return l.chatID == chatID }); i >= 0 {
		old := l.chats[i]
		l.chats = slices.Delete(l.chats, i, i+1)
		if slices.Equal(old.ports, ports) {
			l.chats = append(l.chats, old)
			return old, nil, nil
		}
		replaced = append(replaced, old)
	}
	current = &loopback{chatID: chatID, ports: slices.Clone(ports)}
	if l.chats = append(l.chats, current); len(l.chats) > maxLoopbacks {
		replaced = append(replaced, l.chats[0])
		l.chats = l.chats[1:]
	}
	return current, replaced, nil
}

func (l *loopbacks) remove(failed *loopback) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chats = slices.DeleteFunc(l.chats, func(other *loopback) bool { return other == failed })
}

// open makes the namespace and serves its proxy.
func (l *loopback) open(o Options) error {
	network, err := o.Children.NewNetwork(append([]int{egress.Port}, l.ports...)...)
	if err != nil {
		return err
	}
	l.network, l.pool = network, o.Children.Join(network)
	l.proxy = &egress.Proxy{Hosts: func() egress.Hosts { return hosts(o.Config()) }}
	for i, listener := range network.Listeners() {
		l.serving.Go(func() {
			if i == 0 {
				l.proxy.Serve(listener)
			} else {
				l.proxy.Forward(listener, l.ports[i-1])
			}
		})
	}
	return nil
}

// hosts returns the hosts that sandboxed commands may connect to even if they have no network access.
// It leaves out invalid hosts, which are problems of the configuration.
func hosts(cfg *config.Config) egress.Hosts {
	hosts, _ := egress.NewHosts(append(slices.Clone(cfg.ToolCall.SandboxHosts), cfg.ToolCall.SandboxNetwork.Allow...))
	return hosts
}

// ports returns the ports of this machine that the same commands may connect to.
func ports(cfg *config.Config) []int {
	var out []int
	for _, port := range cfg.ToolCall.SandboxPorts {
		if isSandboxPort(port) && !slices.Contains(out, port) {
			out = append(out, port)
		}
	}
	return out
}

func isSandboxPort(port int) bool { return port > 0 && port <= 65535 && port != egress.Port }

// proxyVariables returns environment variables that make programs use the proxy, except for
// connections to their own loopback interface.
func proxyVariables(proxy string) []string {
	const local = "localhost,127.0.0.1,::1"
	out := []string{"NO_PROXY=" + local, "no_proxy=" + local, "NODE_USE_ENV_PROXY=1", "GIT_HTTP_PROXY_AUTHMETHOD=basic"}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		out = append(out, name+"="+proxy)
	}
	return out
}

// Problems returns problems for entries of the sandbox's lists that are not hosts or ports. Such
// entries have no effect.
func Problems(cfg *config.Loaded) (out []config.Problem) {
	problem := func(cause error, path ...string) {
		origin, _ := cfg.Origin(path...)
		out = append(out, config.Problem{Origin: origin, Cause: fmt.Sprintf("%s: %v; it is ignored", strings.Join(path, "."), cause)})
	}
	for _, list := range []struct {
		path  []string
		hosts []string
	}{{[]string{"toolCall", "sandboxHosts"}, cfg.ToolCall.SandboxHosts}, {[]string{"toolCall", "sandboxNetwork", "allow"}, cfg.ToolCall.SandboxNetwork.Allow}} {
		for _, host := range list.hosts {
			if _, err := egress.NewHosts([]string{host}); err != nil {
				problem(err, list.path...)
			}
		}
	}
	for _, port := range cfg.ToolCall.SandboxPorts {
		switch {
		case port == egress.Port:
			problem(fmt.Errorf("%d is the port of eca's own proxy", port), "toolCall", "sandboxPorts")
		case !isSandboxPort(port):
			problem(fmt.Errorf("%d is not a port (1 to 65535)", port), "toolCall", "sandboxPorts")
		}
	}
	return out
}
