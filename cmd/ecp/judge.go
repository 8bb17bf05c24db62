package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/daemon/judge"
	"github.com/seed-dec29ce4/eca/ecp/cache"
	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/keychain"
)

// newJudge returns the judge: any model that eca can use. Its log is not shown.
func (f *runFlags) newJudge(notify func(string)) *judge.Judge {
	executable, _ := os.Executable() // without it, children run unsupervised
	return judge.New(judge.Options{
		Model: f.judge, Notify: notify, Getenv: os.Getenv, Version: version, Supervisor: executable, Keychain: keychain.System(os.Getenv),
	})
}

// cacheVariable is the environment variable with the folder of the cache.
const cacheVariable = "ECP_CACHE"

// useCache sets the cache of attempts and judges.
func (f *runFlags) useCache(o *runtime.Options) error {
	if f.cache == "" || f.noCache || o.Reference {
		return nil
	}
	store, err := cache.Open(f.cache)
	if err != nil {
		return fmt.Errorf("--cache: %w", err)
	}
	o.Cache = store
	o.Tools.Judge = cache.Judge(o.Tools.Judge, store, o.Judge)
	return nil
}

// judgeIdentity identifies the judge in cache keys.
func (f *runFlags) judgeIdentity() string {
	parts := []string{f.judge, strconv.FormatInt(f.votes, 10)}
	for _, name := range []string{"ECP_LLM_JUDGE_MODEL", "ECP_LLM_JUDGE_TEMPERATURE", "OPENAI_BASE_URL"} {
		parts = append(parts, os.Getenv(name))
	}
	return strings.Join(parts, "\x00")
}

// checkJudges fails if the judge that a scenario needs is not configured, before the first attempt.
// It checks nothing if the answers of the judge may already be known.
func (f *runFlags) checkJudges(plan *runtime.Plan, j *judge.Judge, o runtime.Options) error {
	if o.Reference || o.Cache != nil || f.resume != "" || f.reuseFrom != "" {
		return nil
	}
	for model, scenario := range plan.Judges() {
		if err := j.Check(model); err != nil {
			return fmt.Errorf("scenario %q: llm_judge: %w", scenario, err)
		}
	}
	return nil
}

// graders returns the tools for graders.
func (f *runFlags) graders(j *judge.Judge) grade.Tools { return grade.Tools{Judge: j, Votes: f.votes} }
