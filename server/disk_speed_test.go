package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// The store takes two seconds for each call about some chats. The median answer to prompts,
// approvals and stops of another chat must still take at most 50 ms, or not much longer than in the
// same run without slow chats, if the machine is slower than that.
func TestSlowStoreDelaysNoAnswerOfOtherChats(t *testing.T) {
	needs.Long(t)
	const delay, goal, answers = 2 * time.Second, 50 * time.Millisecond, 20
	ended := make(chan struct{})
	var slowCalls atomic.Int64
	r := newRig(t, options{
		model: `
cassette: 1
default: {steps: [{calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/a.txt", content: x}}]}, {text: ongoing, hang: true}]}
turns: []
`,
		store: func(s chat.Store) chat.Store {
			return troubled{s, func(_ context.Context, _, id string) error {
				if !strings.HasPrefix(id, "slow") {
					return nil
				}
				slowCalls.Add(1)
				select {
				case <-time.After(delay):
				case <-ended:
				}
				return nil
			}}
		},
	})
	t.Cleanup(func() { close(ended) })
	r.Await(0, "the start", fake.Ready())
	measure := func(run string, load func(i int)) (medians map[string]time.Duration) {
		times := map[string][]time.Duration{}
		for i := range answers {
			load(i)
			id := fmt.Sprintf("quick-%s-%d", run, i)
			mark, start := r.Mark(), time.Now()
			r.Call("chat/prompt", map[string]any{"chatId": id, "message": "go"})
			times["prompt"] = append(times["prompt"], time.Since(start))
			r.Await(mark, "the question", ofChat(id, `"toolCallRun"`, `"manualApproval":true`))
			start = time.Now()
			r.Notify("chat/toolCallApprove", map[string]any{"chatId": id, "toolCallId": "call_1"})
			r.Await(mark, "the call", ofChat(id, `"toolCallRunning"`))
			times["approval"] = append(times["approval"], time.Since(start))
			r.Await(mark, "the answer", ofChat(id, "ongoing"))
			start = time.Now()
			r.Notify("chat/promptStop", map[string]any{"chatId": id})
			r.Await(mark, "the stop", ofChat(id, `"finished"`))
			times["stop"] = append(times["stop"], time.Since(start))
		}
		medians = map[string]time.Duration{}
		for what, list := range times {
			slices.Sort(list)
			medians[what] = list[len(list)/2]
		}
		return medians
	}
	floor := measure("alone", func(int) {})
	before := slowCalls.Load()
	beside := measure("beside", func(i int) {
		id := fmt.Sprintf("slow-%d", i%4)
		r.Begin("chat/prompt", map[string]any{"chatId": id, "message": "go"})
		r.Begin("chat/open", map[string]any{"chatId": id})
		r.Notify("chat/promptStop", map[string]any{"chatId": id})
	})
	if n := slowCalls.Load() - before; n < 4 {
		t.Errorf("only %d calls of the store were slow; the test tests nothing", n)
	}
	for what, took := range beside {
		t.Logf("%s: %v beside slow chats, %v without", what, took, floor[what])
		if took > max(goal, 4*floor[what]) {
			t.Errorf("the median answer to a %s takes %v beside slow chats, %v without", what, took, floor[what])
		}
	}
}
