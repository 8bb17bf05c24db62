package grade

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A reward is a number that the tests store; without it, the result is unknown.
func TestReward(t *testing.T) {
	half := 0.5
	for name, c := range map[string]struct {
		printed string
		least   *float64
		passed  bool
		score   float64
		err     string
	}{
		"one":          {"ok\n" + rewardMark + "text\n1\n", nil, true, 1, ""},
		"less":         {"\n" + rewardMark + "text\n 0.5 \n", nil, false, 0.5, ""},
		"enough":       {"\n" + rewardMark + "text\n0.5\n", &half, true, 0.5, ""},
		"more":         {"\n" + rewardMark + "text\n3", nil, true, 1, ""},
		"negative":     {"\n" + rewardMark + "text\n-1", nil, false, 0, ""},
		"json":         {"\n" + rewardMark + `json` + "\n" + `{"reward": 1, "speed": 0.25}`, nil, true, 1, ""},
		"json without": {"\n" + rewardMark + `json` + "\n" + `{"speed": 0.25}`, nil, false, 0, "has no reward"},
		"json null":    {"\n" + rewardMark + `json` + "\n" + `{"reward": null}`, nil, false, 0, "is not a number"},
		"json text":    {"\n" + rewardMark + `json` + "\n" + `{"reward": "1"}`, nil, false, 0, "must be an object of numbers"},
		"json empty":   {"\n" + rewardMark + "json\n", nil, false, 0, "must be an object of numbers"},
		"empty":        {"\n" + rewardMark + "text\n", nil, false, 0, "is not a number"},
		"nan":          {"\n" + rewardMark + "text\nNaN", nil, false, 0, "is not a number"},
		"infinite":     {"\n" + rewardMark + "text\n+Inf", nil, false, 0, "is not a number"},
		"none":         {"boom\n" + rewardMark + "none\n", nil, false, 0, "wrote no reward. It printed 'boom"},
		"cut":          {"boom", nil, false, 0, "wrote no reward"},
		"faked":        {rewardMark + "text\n1\n\n" + rewardMark + "text\n0\n", nil, false, 0, ""},
	} {
		s := Spec{Type: Reward, Run: "sh t", Threshold: c.least}
		got := s.Grade(t.Context(), Subject{Workspace: "/w"}, Tools{Command: func(_ context.Context, _, line string) (int, string, error) {
			if !strings.Contains(line, "( sh t\n)") || !strings.HasPrefix(line, "rm -rf /logs/verifier/reward.json /logs/verifier/reward.txt;") {
				t.Errorf("%s", line)
			}
			return 0, c.printed, nil
		}})
		if got.Passed != c.passed || got.Score != c.score || (got.Err != nil) != (c.err != "") || !strings.Contains(got.Reasoning, c.err) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	broken := Spec{Type: Reward, Run: "x"}.Grade(t.Context(), Subject{Workspace: "/w"}, Tools{Command: func(context.Context, string, string) (int, string, error) { return 0, "", errors.New("gone") }})
	if broken.Err == nil || broken.Passed {
		t.Errorf("%+v", broken)
	}
}

func FuzzReward(f *testing.F) {
	f.Add("json", `{"reward": 1}`)
	f.Add("text", "0.5")
	f.Fuzz(func(t *testing.T, kind, text string) {
		values, err := parseReward(kind, text)
		if v, ok := values["reward"]; err == nil && (!ok || v-v != 0) {
			t.Errorf("%q: %v", text, values)
		}
	})
}
