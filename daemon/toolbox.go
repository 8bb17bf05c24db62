package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/agent"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/diagnostics"
	"github.com/seed-dec29ce4/eca/tools/fs"
	toolmap "github.com/seed-dec29ce4/eca/tools/repomap"
	"github.com/seed-dec29ce4/eca/tools/search"
	"github.com/seed-dec29ce4/eca/tools/shell"
	"github.com/seed-dec29ce4/eca/tools/task"
	"github.com/seed-dec29ce4/eca/tools/web"
	"github.com/seed-dec29ce4/eca/workspace"
)

// toolbox creates the tools of a snapshot.
type toolbox struct {
	*services
	servers  func() *mcp.Manager
	reporter *diagnostics.Reporter // reports the errors and warnings that edits cause
	parser   cmdline.Parser        // of commands
}

// toolsOf returns the tools of a snapshot: eca's own, and the current tools of the configured MCP
// servers, which can change while the snapshot is in use.
func (b *toolbox) toolsOf(s *Snapshot) *tools.Registry {
	native, version := s.native(), b.servers().Version()
	if last := s.tools.Load(); last != nil && last.version == version {
		return last.all
	}
	// Leave out the tools of servers that this configuration does not have: it has no rules for them.
	serverTools := slices.DeleteFunc(b.servers().Tools(), func(t tools.Tool) bool { return !s.hasServer(t.Spec().Server) })
	all := native
	if len(serverTools) > 0 {
		all = tools.NewRegistry(append(b.withLimits(serverTools, s.config.Config), native.All()...)...) // the last one with a name wins: eca's own
	}
	if s.guard != nil {
		var list []tools.Tool
		for _, t := range all.All() {
			if t, offered := s.guard(t); offered {
				list = append(list, t)
			}
		}
		all = tools.NewRegistry(list...)
	}
	s.tools.Store(&toolset{version, all})
	return all
}

func (s *Snapshot) hasServer(name string) bool {
	_, ok := s.config.MCPServers[name]
	return ok
}

// builtIn returns eca's own tools.
func (b *toolbox) builtIn(s *Snapshot) []tools.Tool {
	cfg, clients := s.config, s.client
	var list []tools.Tool
	servers := b.codeServers(s)
	for _, t := range fs.Tools(fs.Options{ReadMaxLines: cfg.ToolCall.ReadFile.MaxLines}) {
		list = append(list, b.withDiagnostics(tools.WithBuffers(t, clients.editor.Files), s, servers))
	}
	list = append(list, search.Tools()...)
	list = append(list, toolmap.Tools(b.maps)...)
	commands := b.shellOptions(cfg)
	commands.Ask = askAboutCommand(clients.sandboxQuestions)
	list = append(list, shell.Tools(commands)...)
	list = append(list, web.Tools(b.pages(cfg.Config))...)
	list = append(list, b.navigation(s, servers)...)
	list = append(list, ask.Tools(clients.questions)...)
	list = append(list, task.Tools()...)
	list = append(list, agent.Tools(subagentOptions(cfg.Config))...)
	return b.withRulesAndSkills(list, s)
}

// bareSnapshot returns a snapshot with which to create tools only to read their names and descriptions.
func bareSnapshot(cfg *config.Loaded, c client) *Snapshot {
	return &Snapshot{inputs: inputs{config: cfg, client: c, workspace: workspace.New()}}
}

func (b *toolbox) nativeTools(s *Snapshot) *tools.Registry {
	list := b.builtIn(s)
	custom, _ := b.customTools(s.config) // problems were reported by badCustomTools
	list = append(list, custom...)
	return tools.NewRegistry(b.withLimits(list, s.config.Config)...)
}

// withLimits wraps tools so that their results are cleaned of credentials, cut to the configured
// limits, and then recorded.
func (b *toolbox) withLimits(list []tools.Tool, cfg *config.Config) []tools.Tool {
	limits := tools.Limits{
		Lines: cfg.ToolCall.OutputTruncation.Lines, Bytes: cfg.ToolCall.OutputTruncation.SizeKb << 10, Whole: b.outputs,
	}
	for i, t := range list {
		list[i] = b.exporter.Tool(b.journal.Tool(tools.Limit(tools.Redact(tools.WithNews(t, b.jobs.News), b.cleanOutput), limits)))
	}
	return list
}

// shellOptions returns the options for running commands.
func (b *toolbox) shellOptions(cfg *config.Loaded) shell.Options {
	return shell.Options{
		Path: cfg.ToolCall.ShellCommand.Path, Args: cfg.ToolCall.ShellCommand.Args,
		SummaryMax: cfg.ToolCall.ShellCommand.SummaryMaxLength,
		Executable: b.opts.Executable, Children: b.children, Jobs: b.jobs, Getenv: b.opts.Getenv, Bash: b.bash,
		Network: b.bounds.JoinNetwork, Memory: b.memory, Parser: &b.parser,
		HeldBack: b.heldBack,
		Sandbox:  func(call tools.Call) sandbox.Policy { return b.bounds.Call(cfg, call) },
		Environ:  func(call tools.Call) []string { return b.bounds.CallEnvironment(cfg, call) },
	}
}

// customTools creates the tools that the user configured. A custom tool must not have the name of
// one of eca's own, because it would inherit that tool's permissions. problems has the errors by tool
// name.
func (b *toolbox) customTools(cfg *config.Loaded) (list []tools.Tool, problems map[string]error) {
	if len(cfg.CustomTools) == 0 {
		return nil, nil
	}
	taken := []string{chat.CompactTool}
	for _, t := range b.everyTool(cfg) {
		taken = append(taken, t.Spec().Name)
	}
	problems = map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(cfg.CustomTools)) {
		c := cfg.CustomTools[name]
		options := b.shellOptions(cfg)
		options.Sandbox = func(call tools.Call) sandbox.Policy { return b.bounds.Custom(cfg, name, call) }
		options.Environ = func(call tools.Call) []string { return b.bounds.CustomEnvironment(cfg, name, call) }
		tool, err := shell.CustomTool(options, shell.Custom{Name: name, Description: c.Description, Command: c.Command, Schema: c.Schema})
		if slices.Contains(taken, name) {
			err = fmt.Errorf("a tool of eca has this name")
		}
		if err != nil {
			problems[name] = err
			continue
		}
		list = append(list, tool)
	}
	return list, problems
}

// badCustomTools returns problems for the custom tools that cannot be used.
func (b *toolbox) badCustomTools(cfg *config.Loaded) []config.Problem {
	_, problems := b.customTools(cfg)
	var out []config.Problem
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		origin, _ := cfg.Origin("customTools", name)
		out = append(out, config.Problem{Origin: origin, Cause: fmt.Sprintf("customTools.%s is left out: %v", name, problems[name])})
	}
	return out
}

// askAboutCommand returns a function that asks the user about what a command did or was prevented
// from doing. It returns nil if no client shows questions.
func askAboutCommand(c ask.Client) func(context.Context, tools.Call, string, []shell.Choice) string {
	if c == nil {
		return nil
	}
	return func(ctx context.Context, call tools.Call, question string, choices []shell.Choice) string {
		q := ask.Question{ChatID: call.ChatID, CallID: call.ID, Text: question}
		for _, choice := range choices {
			q.Options = append(q.Options, ask.Option(choice))
		}
		answer, err := c.Ask(ctx, q)
		if err != nil || answer.Cancelled {
			return ""
		}
		return answer.Text
	}
}

// subagentOptions returns which agents can be started as subagents.
func subagentOptions(cfg *config.Config) agent.Options {
	describe := func(names []string) []agent.Agent {
		var out []agent.Agent
		for _, name := range names {
			out = append(out, agent.Agent{Name: name, Description: cfg.Agents[name].Description})
		}
		return out
	}
	var all []string
	for name, a := range cfg.Agents {
		if a.Subagent() {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return agent.Options{All: describe(all), For: func(by string) []agent.Agent { return describe(cfg.Spawnable(by)) }}
}
