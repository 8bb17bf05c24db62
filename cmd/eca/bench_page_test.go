package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

const speedTape = `cassette: 1
turns:
  - user: '^flood'
    steps: [{text: "word ", repeat: 100000, delay: 1ms}]
default: {steps: [{text: "A short answer with a [link](https://example.com) and code: ~x~."}]}
`

// BenchmarkPage measures the chat page in Chromium: how long a typed character takes while an answer of
// 1,000 words a second arrives, and how long a chat of 5,000 messages takes until its newest ones are
// painted. The floor of typing is a text field in an empty page; that of opening is the answer to
// chat/open over a WebSocket.
func BenchmarkPage(b *testing.B) {
	chromium := needs.Program(b, "chromium", "chromium")
	node, modules := testkit.NodeTools(b, os.Getenv, "playwright-core")
	provider := newProvider(b, speedTape)
	p := newPlace(b, append(provider.env(), `ECA_CONFIG={"chat":{"title":false}}`)...)
	const opens = 20
	_, link, later := startWeb(b, p)
	conn := attachWeb(b, link)
	conn.SetReadLimit(-1)
	const messages = 5000 // prompts and answers
	for i := range messages / 2 {
		askPage(b, conn, fmt.Sprintf(`"method":"chat/prompt","params":{"chatId":"long","message":"question %d"}`, i), `"state":"finished"`)
	}
	askPage(b, conn, `"method":"chat/update","params":{"chatId":"long","title":"The long chat"}`, `"id":3`)
	var answers []float64
	for range opens {
		began := time.Now()
		askPage(b, conn, `"method":"chat/open","params":{"chatId":"long","limit":8}`, `"id":3`)
		answers = append(answers, float64(time.Since(began).Microseconds())/1000)
	}
	slices.Sort(answers)
	given, err := json.Marshal(map[string]any{"link": <-later, "modules": modules, "chromium": chromium, "keys": 200, "opens": opens})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), node, filepath.Join("testdata", "web", "speed.mjs"), string(given))
		cmd.Env, cmd.Stderr = p.env, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		figures := map[string]float64{}
		if err := json.Unmarshal(out, &figures); err != nil {
			b.Fatalf("%s: %v", out, err)
		}
		for name, figure := range figures {
			b.ReportMetric(figure, name)
		}
	}
	b.ReportMetric(answers[opens/2], "floor-opened-p50-ms")
	b.ReportMetric(0, "ns/op")
}

// askPage sends a request with the id 3, and reads until a message has the text.
func askPage(b *testing.B, conn *websocket.Conn, request, until string) {
	b.Helper()
	if err := conn.Write(b.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":3,`+request+`}`)); err != nil {
		b.Fatal(err)
	}
	for {
		_, raw, err := conn.Read(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(string(raw), until) {
			return
		}
	}
}
