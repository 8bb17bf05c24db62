package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// mcpScript is an MCP server in shell. It answers a handshake and a list of one tool, and writes
// its process id, and that of a child in another session, to a file.
const mcpScript = `echo $$ >>pids; setsid sh -c 'echo $$ >>pids; exec sleep 300' &
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
  *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}' ;;
  *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"called"}]}}' ;;
  esac
done`

const deafScript = `echo $$ >>pids; trap '' TERM; while :; do sleep 300; done`

// With twenty servers, five of them faulty, the others start, and the daemon names why two failed. No
// server is left after the daemon ends, whether it is shut down or killed.
func TestMCPServersEnd(t *testing.T) {
	needs.Long(t)
	for _, killed := range []bool{false, true} {
		here := newPlace(t, "ECA_CONFIG="+twentyServers(t))
		p := here.serve(t)
		p.Open(here.root, nil)
		for i := range 15 {
			p.Await(0, "a good server", fake.Contains("tool/serverUpdated", fmt.Sprintf(`"name":"good%d","status":"running"`, i), `"name":"t"`))
		}
		p.Await(0, "why", fake.Contains("tool/serverUpdated", `"name":"bad3","status":"failed"`, "exit code 1"))
		p.Await(0, "why", fake.Contains("tool/serverUpdated", `"name":"bad4","status":"failed"`, "no-such-program"))
		pids := awaitPids(t, here, 33)
		if killed {
			p.kill9(t)
		} else {
			shutDown(t, p)
		}
		awaitGone(t, pids)
		if strings.Contains(p.stderr.String(), "panic") {
			t.Errorf("the log:\n%s", p.stderr)
		}
	}
}
