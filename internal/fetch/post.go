package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// Limits of a notification.
const (
	postTime   = 15 * time.Second // for the whole request
	maxSkipped = 64 << 10         // of the answer's body, which is discarded
)

// Poster sends notifications to addresses that the user did not choose. The rules for hosts are
// those for pages. In addition, only https is allowed except to hosts that the user excepted
// (Rules.Private), redirects are not followed, and only the status of an answer is returned, so
// that the party that chose the address learns nothing about the server.
type Poster struct {
	getter  *Getter
	timeout time.Duration
}

// NewPoster returns a Poster that uses a network. agent is the User-Agent of its requests.
func NewPoster(network *netclient.Network, rules Rules, agent string) *Poster {
	return &Poster{getter: New(network, rules, agent), timeout: postTime}
}

// Check returns why nothing would be sent to a URL, without any network access. The addresses of a
// name are checked only when it is dialed.
func (p *Poster) Check(address string) error {
	u, err := p.getter.parse(address)
	if err != nil || u.Scheme == "https" {
		return err
	}
	host := u.Hostname()
	at, err := netip.ParseAddr(host)
	if err != nil && localhost.Is(host) {
		at, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if matchesHost(host, p.getter.rules.Private) || err == nil && p.getter.isExcepted(host, at) {
		return nil
	}
	return fmt.Errorf("notifications go to https addresses only; the user can except %s in %s.privateHosts", host, p.getter.rules.Section)
}

// Post sends a body and returns the status of the answer.
func (p *Poster) Post(ctx context.Context, address string, header http.Header, body []byte) (status int, err error) {
	if err := p.Check(address); err != nil {
		return 0, err
	}
	u, err := p.getter.parse(address)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("there was no answer within %s", p.timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("User-Agent", p.getter.userAgent)
	client := &http.Client{
		Transport:     &guardedTransport{p.getter, p.getter.network.Client(netclient.Options{Connect: connectTime, Guarded: true}).Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, explain(ctx, err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxSkipped) // so that the sender's connection can be reused
	return resp.StatusCode, nil
}
