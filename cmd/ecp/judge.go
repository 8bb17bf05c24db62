package main

import (
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/keychain"
	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// newJudge returns the model that is asked. It is made of eca's own parts, so that whatever
// eca can use can judge. What it logs would be in the way here.
func (f *runFlags) newJudge(network *netclient.Network, notify func(string)) *daemon.Judge {
	executable, _ := os.Executable() // without it children run unsupervised
	return &daemon.Judge{
		Model: f.judge, Network: network, Notify: notify,
		Options: daemon.Options{Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler), Version: version, Supervisor: executable, Executable: executable, Keychain: keychain.System(os.Getenv)},
	}
}

// judgeIdentity says which judge it is, for what its verdicts stand for.
func (f *runFlags) judgeIdentity() string {
	parts := []string{f.judge, strconv.FormatInt(f.votes, 10)}
	for _, name := range []string{"ECP_LLM_JUDGE_MODEL", "ECP_LLM_JUDGE_TEMPERATURE", "OPENAI_BASE_URL"} {
		parts = append(parts, os.Getenv(name))
	}
	return strings.Join(parts, "\x00")
}

// graders are what graders use.
func (f *runFlags) graders(j *daemon.Judge) grade.Tools { return grade.Tools{Judge: j, Votes: f.votes} }
