package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// modeVariable makes this test binary an MCP server whose behaviour is the value.
const modeVariable = "ECA_TEST_MCP"

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	switch mode := os.Getenv(modeVariable); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "block":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(os.Getpid())
		select {}
	case "daemon":
		playDaemon()
	case "conformance":
		if err := playClient(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		(&faulty{mode: mode, out: bufio.NewWriter(os.Stdout), tools: []string{"echo"}}).serve()
	}
}

// faulty is an MCP server over stdin and stdout that behaves well or badly.
type faulty struct {
	mode       string
	mu         sync.Mutex
	out        *bufio.Writer
	tools      []string
	pendingIDs []json.RawMessage // ids of calls that wait for other calls
	pages      int               // of listed tools
	shook      []string          // requests of handshakes
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		RequestID any            `json:"requestId"`
		Meta      struct {
			ProgressToken any `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
}

func (f *faulty) serve() {
	switch f.mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "first line\nno such option: --nonsense")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "garbage":
		fmt.Print("<html>\x00\xff not json\n{\"id\":}\n[1,2]\n\n{\"jsonrpc\":\"2.0\"}\n{\"id\":77,\"result\":{}}\n")
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if f.mode == "stubborn" {
				select {}
			}
			return
		}
		var m message
		if json.Unmarshal(line, &m) == nil {
			f.handle(m)
		}
	}
}

func (f *faulty) raw(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.out.WriteString(text + "\n")
	_ = f.out.Flush()
}

func (f *faulty) answer(id json.RawMessage, result string) {
	if f.mode == "garbage" {
		f.raw("Listening on nothing at all {")
	}
	f.raw(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
	if f.mode == "twice" {
		f.raw(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
	}
}

// hidden is a JSON string with invisible characters.
const hidden = `"a\u202eb\u001b[2Jc\u200bd"`

func textResult(text string) string {
	raw, _ := json.Marshal(text)
	return `{"content":[{"type":"text","text":` + string(raw) + `}]}`
}

func (f *faulty) handle(m message) {
	switch m.Method {
	case "initialize":
		f.shook = append(f.shook, m.Method)
		switch f.mode {
		case "silent":
			return
		case "late": // its start took longer than eca waits for the answer to server/discover
			f.answer(f.pendingIDs[0], modernServer)
			f.pendingIDs = nil
			f.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32022,"message":"locked"}}`)
			return
		case "hidden":
			f.answer(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":`+hidden+`,"version":`+hidden+`},"instructions":`+hidden+`}`)
			return
		case "newer":
			f.answer(m.ID, `{"protocolVersion":"2026-07-28","capabilities":{"tools":{}},"serverInfo":{"name":"newer","version":"1"}}`)
			return
		case "beyond":
			f.answer(m.ID, `{"protocolVersion":"2031-01-01","capabilities":{},"serverInfo":{"name":"beyond","version":"1"}}`)
			return
		case "modern":
			f.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"initialize is history"}}`)
			return
		}
		instructions := "be kind"
		if f.mode == "endless" {
			instructions = strings.Repeat("x", 2*maxInstructions)
		}
		f.answer(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"faulty","version":"1"},"instructions":"`+instructions+`"}`)
	case "server/discover":
		f.shook = append(f.shook, m.Method)
		f.discover(m)
	case "prompts/list":
		f.answer(m.ID, `{"prompts":[{"name":`+hidden+`,"description":`+hidden+`,"arguments":[{"name":`+hidden+`}]}]}`)
	case "prompts/get":
		for name := range m.Params.Arguments {
			text, _ := json.Marshal(m.Params.Name + " with " + name)
			f.answer(m.ID, `{"messages":[{"role":"user","content":{"type":"text","text":`+string(text)+`}}]}`)
		}
	case "resources/list":
		f.answer(m.ID, `{"resources":[{"uri":"a:\u202eb","name":"x"},{"uri":"a:b","name":`+hidden+`,"description":`+hidden+`}]}`)
	case "tools/list":
		if f.mode == "hidden" {
			f.answer(m.ID, `{"tools":[{"name":`+hidden+`,"description":`+hidden+`,"inputSchema":{"type":"object","properties":{"x":{"type":"string","description":`+hidden+`}}}}]}`)
			return
		}
		f.list(m)
	case "tools/call":
		f.call(m)
	case "ping":
		f.answer(m.ID, `{}`)
	case "notifications/cancelled":
		fmt.Fprintf(os.Stderr, "cancelled %v\n", m.Params.RequestID)
	case "subscriptions/listen":
	case "":
		if string(m.ID) == `"ours"` { // the answer to our ping
			f.answer(f.pendingIDs[0], textResult("the client answered "+string(m.Result)))
		}
	}
}

const modernServer = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"2"}}}`

// discover answers server/discover, mostly in one of the ways of older servers.
func (f *faulty) discover(m message) {
	fail := func(failed string) { f.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + failed + `}`) }
	switch f.mode {
	case "modern", "both":
		f.answer(m.ID, modernServer)
	case "late":
		f.pendingIDs = []json.RawMessage{m.ID}
	case "deaf", "silent":
	case "fragile":
		fmt.Fprintln(os.Stderr, "unexpected message before initialize")
		os.Exit(1)
	case "stuck":
		for {
			time.Sleep(time.Hour)
		}
	case "agreeable":
		f.answer(m.ID, `{}`)
	case "odd":
		fail(`{"code":0,"message":"","data":[1]}`)
	case "candid":
		fail(`{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}`)
	case "future":
		fail(`{"code":-32022,"message":"no","data":{"supported":["2031-01-01"]}}`)
	default:
		fail(`{"code":-32601,"message":"Method not found"}`)
	}
}

func (f *faulty) list(m message) {
	if f.mode == "endless" { // each page refers to another one
		f.pages++
		page := []string{`{"name":"wordy","description":"` + strings.Repeat("x", 2*maxDescription) + `"}`, `{"name":"large","inputSchema":{"type":"object","title":"` + strings.Repeat("x", maxSchema) + `"}}`}
		if f.pages > 1 {
			page = nil
		}
		for i := range 10 {
			page = append(page, fmt.Sprintf(`{"name":"t%d_%d"}`, f.pages, i))
		}
		f.answer(m.ID, fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, strings.Join(page, ","), f.pages))
		return
	}
	var list []string
	for _, name := range f.tools {
		list = append(list, `{"name":"`+name+`","description":"`+name+` it","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"anyOf":[{"required":["text"]}]}}`)
	}
	for _, name := range []string{"together", "crash", "huge", "hang", "progress", "structured", "fork", "change", "pingme", "handshake"} {
		list = append(list, `{"name":"`+name+`","inputSchema":{"type":"object"},"annotations":{"destructiveHint":`+fmt.Sprint(name == "fork")+`}}`)
	}
	f.answer(m.ID, `{"tools":[`+strings.Join(list, ",")+`]}`)
}

func (f *faulty) call(m message) {
	switch m.Params.Name {
	case "a\u202eb\x1b[2Jc\u200bd":
		f.answer(m.ID, textResult("you called "+m.Params.Name))
	case "echo":
		f.answer(m.ID, textResult(fmt.Sprint(m.Params.Arguments["text"])))
	case "together": // answers when as many calls wait as the call requests
		f.pendingIDs = append(f.pendingIDs, m.ID)
		if want, _ := m.Params.Arguments["calls"].(float64); len(f.pendingIDs) == int(want) {
			for _, id := range f.pendingIDs {
				f.answer(id, textResult("all "+fmt.Sprint(len(f.pendingIDs))))
			}
			f.pendingIDs = nil
		}
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(7)
	case "huge":
		_, _ = io.CopyN(os.Stdout, endless{}, 1<<30)
	case "hang":
	case "progress":
		f.pendingIDs = append(f.pendingIDs, m.ID)
		token, _ := json.Marshal(m.Params.Meta.ProgressToken)
		for i := range 3 {
			f.raw(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"step %d"}}`, token, i, i))
		}
		f.answer(m.ID, textResult("done"))
	case "structured":
		f.answer(m.ID, `{"structuredContent":{"a": [1, 9007199254740993]}}`)
	case "fork":
		f.answer(m.ID, textResult(startBlocked()))
	case "change":
		f.tools = []string{"other"}
		f.raw(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		f.answer(m.ID, textResult("changed"))
	case "handshake":
		f.answer(m.ID, textResult(strings.Join(f.shook, " ")))
	case "pingme":
		f.pendingIDs = []json.RawMessage{m.ID}
		f.raw(`{"jsonrpc":"2.0","id":"ours","method":"ping"}`)
	default:
		f.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32602,"message":"no tool ` + m.Params.Name + `"}}`)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
