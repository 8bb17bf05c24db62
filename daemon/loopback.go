package daemon

import (
	"fmt"
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/egress"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
)

// maxLoopbacks bounds the chats that have a network namespace. That of the chat that used it
// least recently is closed: what runs in it keeps its loopback, but not the proxy.
const maxLoopbacks = 16

// loopbacks are the network namespaces of chats.
type loopbacks struct {
	mu     sync.Mutex  // guards what follows
	chats  []*loopback // the one that was used last at the end
	closed bool
}

// loopback is the network namespace of a chat, with the proxy that leads out of it.
type loopback struct {
	chatID  string
	ports   []int
	network *proc.Network
	pool    *proc.Pool
	proxy   *egress.Proxy
	serving sync.WaitGroup
}

// close ends a loopback. Children that run go on.
func (l *loopback) close() {
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
	for _, one := range all {
		one.close()
	}
}

// joinNetwork has the child of a call that has a loopback only share that of its chat. Where
// that is not possible, the child has one for itself.
func (d *Daemon) joinNetwork(call tools.Call, spec *proc.Spec) (*proc.Pool, func() []string) {
	if spec.Sandbox.Level != sandbox.Workspace || !spec.Sandbox.Loopback || call.ChatID == "" {
		return nil, nil
	}
	l, err := d.loopback(call.ChatID, d.Config().ToolCall.SandboxPorts)
	if err != nil {
		d.opts.Log.Warn("commands of a chat do not share a loopback", "err", err)
		return nil, nil
	}
	spec.Sandbox.Joined = true
	spec.Env = append(spec.Env, proxyVariables()...)
	l.proxy.Refused() // by earlier commands
	return l.pool, l.proxy.Refused
}

// loopback returns that of a chat.
func (d *Daemon) loopback(chatID string, ports []int) (*loopback, error) {
	all := &d.loopbacks
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed {
		return nil, fmt.Errorf("eca is shutting down")
	}
	if i := slices.IndexFunc(all.chats, func(l *loopback) bool { return l.chatID == chatID }); i >= 0 {
		l := all.chats[i]
		all.chats = slices.Delete(all.chats, i, i+1)
		if slices.Equal(l.ports, ports) {
			all.chats = append(all.chats, l)
			return l, nil
		}
		l.close()
	}
	l, err := d.newLoopback(chatID, ports)
	if err != nil {
		return nil, err
	}
	if all.chats = append(all.chats, l); len(all.chats) > maxLoopbacks {
		oldest := all.chats[0]
		all.chats = all.chats[1:]
		oldest.close()
	}
	return l, nil
}

func (d *Daemon) newLoopback(chatID string, ports []int) (*loopback, error) {
	network, err := d.children.NewNetwork(append([]int{egress.Port}, ports...)...)
	if err != nil {
		return nil, err
	}
	l := &loopback{chatID: chatID, ports: slices.Clone(ports), network: network, pool: d.children.Join(network), proxy: &egress.Proxy{
		Hosts: func() egress.Hosts { return sandboxHosts(d.Config().Config) },
	}}
	for i, listener := range network.Listeners() {
		l.serving.Go(func() {
			if i == 0 {
				l.proxy.Serve(listener)
			} else {
				l.proxy.Forward(listener, ports[i-1])
			}
		})
	}
	return l, nil
}

// sandboxHosts are the hosts that sandboxed commands without network reach. What is not a host
// was reported when the configuration was read.
func sandboxHosts(cfg *config.Config) egress.Hosts {
	hosts, _ := egress.NewHosts(append(slices.Clone(cfg.ToolCall.SandboxHosts), cfg.ToolCall.SandboxNetwork.Allow...))
	return hosts
}

// proxyVariables lead programs to the proxy, but for their own loopback.
func proxyVariables() []string {
	proxy, local := fmt.Sprintf("http://127.0.0.1:%d", egress.Port), "localhost,127.0.0.1,::1"
	out := []string{"NO_PROXY=" + local, "no_proxy=" + local, "NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		out = append(out, name+"="+proxy)
	}
	return out
}
