package main

import (
	"testing"
	"time"
)

// While a model is silent, the user is shown what eca waits for. While a tool runs, eca does not
// wait for the model.
func TestSilenceOfAModel(t *testing.T) {
	begin := time.Now()
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	var w modelSilence
	for _, c := range []struct {
		second  int
		content *execContent
		silent  time.Duration
	}{
		{0, &execContent{Type: "progress", State: "running", Text: "Waiting model"}, 0},
		{4, nil, 0},
		{5, nil, 5 * time.Second},
		{20, nil, 0},
		{35, nil, 35 * time.Second},
		{36, &execContent{Type: "toolCallRun", ID: "1"}, 0},
		{136, nil, 0},
		{137, &execContent{Type: "toolCalled", ID: "1"}, 0},
		{143, nil, 6 * time.Second},
		{144, &execContent{Type: "progress", State: "finished"}, 0},
		{344, nil, 0},
	} {
		if c.content != nil {
			w.observe(*c.content, at(c.second))
		}
		if silent, in := w.due(at(c.second)); silent != c.silent || in <= 0 {
			t.Errorf("second %d: %s, look again in %s", c.second, silent, in)
		}
	}
}
