package grade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// RewardFolder is the folder where the command of a reward grader writes its result: reward.json, an
// object of numbers with the key reward, or otherwise reward.txt, a number.
const RewardFolder = "/logs/verifier"

// rewardTime is the default time limit for the command of a reward grader, in seconds.
const rewardTime = 600

// rewardMark separates the output of a command from the reward.
const rewardMark = "ecp-reward-follows:"

// rewardScript returns a script that runs a command and prints the reward. It first removes reward
// files, which the agent may have written.
func rewardScript(run string) string {
	const json, text = RewardFolder + "/reward.json", RewardFolder + "/reward.txt"
	return "rm -rf " + json + " " + text + "; mkdir -p " + RewardFolder + "\n( " + run + "\n) > " + RewardFolder + "/test-stdout.txt 2>&1\n" +
		"tail -c 2000 " + RewardFolder + "/test-stdout.txt; echo\n" +
		"if [ -e " + json + " ]; then echo " + rewardMark + "json; head -c 2048 " + json + "; elif [ -e " + text + " ]; then echo " + rewardMark + "text; head -c 2048 " + text + "; else echo " + rewardMark + "none; fi"
}

// gradeReward runs a command that computes the reward. Without a valid reward, the check is an error.
func (s Spec) gradeReward(ctx context.Context, subject Subject, t Tools) Check {
	command := s
	command.Run = rewardScript(s.Run)
	if command.TimeoutS == 0 {
		command.TimeoutS = rewardTime
	}
	output := ""
	run := t.Command
	if run != nil {
		t.Command = func(ctx context.Context, dir, line string) (code int, _ string, err error) {
			code, output, err = run(ctx, dir, line)
			return code, output, err
		}
	}
	ran := command.gradeCommand(ctx, subject, t)
	const field = "reward"
	if ran.Err != nil {
		return Check{Field: field, Err: ran.Err}
	}
	at := strings.LastIndex(output, rewardMark)
	if at < 0 {
		return Check{Field: field, Err: fmt.Errorf("%q wrote no reward. It printed %s", s.Run, quoteShort(output))}
	}
	kind, text, _ := strings.Cut(output[at+len(rewardMark):], "\n")
	values, err := parseReward(kind, text)
	if err != nil {
		return Check{Field: field, Err: fmt.Errorf("%q: %w. It printed %s", s.Run, err, quoteShort(output[:at]))}
	}
	least := 1.0
	if s.Threshold != nil {
		least = *s.Threshold
	}
	reward := values["reward"]
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name+" "+strconv.FormatFloat(values[name], 'g', -1, 64))
	}
	reason := fmt.Sprintf("%s; at least %g passes. It printed %s", strings.Join(parts, ", "), least, quoteShort(output[:at]))
	return Check{Field: field, Passed: reward >= least, Score: min(max(reward, 0), 1), Reasoning: reason}
}

// parseReward parses a reward: finite numbers, one of them named reward.
func parseReward(kind, text string) (map[string]float64, error) {
	switch kind {
	case "json":
		var read map[string]*float64
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			return nil, fmt.Errorf("reward.json must be an object of numbers with at most 2048 bytes: %w", err)
		}
		values := map[string]float64{}
		for name, v := range read {
			if v == nil {
				return nil, fmt.Errorf("reward.json: %.40q is not a number", name)
			}
			values[name] = *v
		}
		if _, ok := values["reward"]; !ok {
			return nil, errors.New("reward.json has no reward")
		}
		return values, nil
	case "text":
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("reward.txt contains %.40q, which is not a number", strings.TrimSpace(text))
		}
		return map[string]float64{"reward": v}, nil
	}
	return nil, errors.New("it wrote no reward")
}
