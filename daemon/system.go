package daemon

import (
	"cmp"
	"context"
	"runtime"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
)

// systemSources lists the sources of the system prompt in addition to the engine's own. Within a
// section, blocks are in the order of their sources.
func (d *Daemon) systemSources(s *Snapshot) []chat.SystemSource {
	return []chat.SystemSource{rulesAndSkills{s}, agentsFiles{global: config.Home(d.opts.Getenv), claudeHome: d.claudeHome()}, d.Instructions()}
}

// agentsFiles provides the AGENTS.md files.
type agentsFiles struct{ global, claudeHome string }

const agentsIntroduction = "Knowledge and instructions from files of the user and the project. Where two of them disagree, follow the one nearer to the file that you are working on.\n\n"

// Blocks implements chat.SystemSource.
func (a agentsFiles) Blocks(ctx context.Context, q chat.SystemQuery) (blocks []chat.SystemBlock, problems []string) {
	query := contexts.AgentsQuery{
		Roots: q.Roots, Global: a.global, Parents: q.Config.IncludeParentAgentsFiles, Claude: q.Config.ClaudeMDFallback || q.Config.ClaudeFiles,
	}
	if q.Config.ClaudeFiles {
		query.ClaudeHome = a.claudeHome
	}
	if q.Config.PureConfig {
		query.Global, query.ClaudeHome = "", ""
	}
	files, problems := contexts.Agents(ctx, query)
	for i, f := range files {
		text := f.Render()
		if i == 0 {
			text = agentsIntroduction + text
		}
		blocks = append(blocks, chat.SystemBlock{Section: chat.SectionContext, Name: f.Path, Category: chat.ShareAgents, Text: text})
	}
	return blocks, problems
}

// machine describes the machine, for prompts.
func (s *services) machine() chat.Machine {
	m := chat.Machine{
		OS: runtime.GOOS, Shell: "bash", Home: cmp.Or(s.opts.Getenv("HOME"), s.opts.Getenv("USERPROFILE")),
		User: cmp.Or(s.opts.Getenv("USER"), s.opts.Getenv("LOGNAME"), s.opts.Getenv("USERNAME")),
	}
	switch runtime.GOOS {
	case "linux":
		m.OS = "Linux"
	case "darwin":
		m.OS = "macOS"
	case "windows":
		m.OS, m.Shell = "Windows", "powershell.exe"
	}
	return m
}
