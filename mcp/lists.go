package mcp

import (
	"context"
	"fmt"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// listSet is a set of lists that a server can change while it runs.
type listSet uint8

const (
	toolsList listSet = 1 << iota
	promptsList
	resourcesList
)

// markStale records that lists have to be fetched again, and wakes the server's supervisor. It never
// waits.
func (c *connection) markStale(which listSet) {
	c.mu.Lock()
	c.stale |= which
	if which&toolsList != 0 && c.toolsListed == nil {
		c.toolsListed = make(chan struct{})
	}
	c.mu.Unlock()
	select {
	case c.listsChanged <- struct{}{}:
	default:
	}
}

// takeStale returns the lists to fetch and clears the marks.
func (c *connection) takeStale() listSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	which := c.stale
	c.stale = 0
	return which
}

// signalToolsListed wakes AwaitTools, unless the server has announced another change of its tools
// since they were fetched.
func (c *connection) signalToolsListed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.toolsListed != nil && c.stale&toolsList == 0 {
		close(c.toolsListed)
		c.toolsListed = nil
	}
}

// AwaitTools waits until the tools of all servers that announced a change have been listed, or ctx
// ends.
func (m *Manager) AwaitTools(ctx context.Context) {
	m.mu.Lock()
	var pending []chan struct{}
	var lost []<-chan struct{}
	for _, s := range m.servers {
		if c := s.status.Load().conn; c != nil {
			c.mu.Lock()
			if c.toolsListed != nil {
				pending, lost = append(pending, c.toolsListed), append(lost, c.done())
			}
			c.mu.Unlock()
		}
	}
	m.mu.Unlock()
	for i := range pending {
		select {
		case <-pending[i]:
		case <-lost[i]:
		case <-ctx.Done():
		}
	}
}

// fetchPages fetches a list page by page. It calls take with each page; take returns the cursor of the next
// page, or an empty cursor after the last one.
func fetchPages[P any, C ~string](ctx context.Context, c *connection, method wire.MCPMethod, take func(*P) C) error {
	params := map[string]any{}
	for range maxPages {
		page := new(P)
		if err := c.session.call(ctx, string(method), params, page); err != nil {
			return c.session.causeOr(err)
		}
		next := take(page)
		if next == "" || next == params["cursor"] {
			break
		}
		params["cursor"] = next
	}
	return nil
}

// fetchedLists is the result of fetching lists.
type fetchedLists struct {
	conn      *connection
	which     listSet // the lists that arrived
	tools     []*Tool
	leftOut   []string
	prompts   []Prompt
	resources []Resource
	errs      []error
}

// refresh fetches the lists of a server that may have changed.
func (s *server) refresh(c *connection) {
	ch, which := make(chan fetchedLists, 1), c.takeStale()
	s.refreshing = ch
	limit := s.m.currentSettings().Start
	go func() {
		out := fetchedLists{conn: c}
		fetch := func(l listSet, name string, get func(context.Context) error) {
			if which&l == 0 {
				return
			}
			ctx, cancel := withTimeLimit(s.ctx, limit)
			defer cancel()
			var err error
			if bug := s.recoverPanic(func() { err = get(ctx) }); bug != nil {
				err = bug
			}
			if err != nil {
				out.errs = append(out.errs, fmt.Errorf("%s: %w", name, err))
				return
			}
			out.which |= l
		}
		fetch(toolsList, "tools", func(ctx context.Context) (err error) { out.tools, out.leftOut, err = c.listTools(ctx, s); return })
		fetch(promptsList, "prompts", func(ctx context.Context) (err error) { out.prompts, err = c.listPrompts(ctx, s); return })
		fetch(resourcesList, "resources", func(ctx context.Context) (err error) { out.resources, err = c.listResources(ctx, s); return })
		ch <- out
	}()
}

// storeLists stores the fetched lists.
func (s *server) storeLists(r fetchedLists) {
	if r.conn != s.conn { // from an earlier connection
		return
	}
	defer r.conn.signalToolsListed()
	for _, err := range r.errs {
		s.m.deps.Log.Warn("cannot fetch a list of an MCP server", "server", s.name, "err", err)
	}
	if r.which == 0 {
		return
	}
	offer := *s.offer
	if r.which&toolsList != 0 {
		offer.Tools, offer.LeftOut = r.tools, r.leftOut
	}
	if r.which&promptsList != 0 {
		offer.Prompts = r.prompts
	}
	if r.which&resourcesList != 0 {
		offer.Resources = r.resources
	}
	s.offer = &offer
	s.publish()
}
