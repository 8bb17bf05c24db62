package daemon

import (
	"cmp"
	"context"
	"os"

	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/tools"
)

func (d *Daemon) newCommands() *command.Commands {
	return command.New(command.Deps{
		Version:    d.opts.Version,
		Machine:    d.machine(),
		Config:     d.Config,
		Extensions: d.Extensions,
		DenySkill: func(agent, name string) string {
			v := d.current().judgeSkill(tools.Call{Agent: agent, Roots: d.Roots()}, name)
			if v.Decision != tools.Deny {
				return ""
			}
			return cmp.Or(v.Rule, v.Reason)
		},
		ConfigHome: config.Home(d.opts.Getenv),
		Secrets:    func() []string { return d.secrets(d.current()) },
		Roots:      d.Roots,
		Engine:     d.Engine,
		Store:      d.store,
		Models:     engineModels{d.Models, d.spending},
		Choice:     d.ModelChoice,
		Doctor:     func(ctx context.Context) doctor.Report { return d.Doctor(ctx, false) },
		Search:     d.Search,
		Hooks:      func() []hooks.Info { return d.current().hooks.List() },
		Plugins:    d.Plugins,
		Logins:     d,
		Spending:   d.spending,
		Prompts:    d.CommandPrompts(),
		RepoMap:    d.maps.show,
		Ask:        d.questions,
		Remote:     d.remote.status,
		TempDir:    os.TempDir(),
		Now:        d.opts.Now,
		NewID:      d.opts.NewID,
	})
}

// AnswersItself reports whether a message is a command that is answered without a model.
func (d *Daemon) AnswersItself(message string) bool {
	c, ok := d.commands.Find(message)
	return ok && c.Run != nil
}

// Commands lists the slash commands.
func (d *Daemon) Commands() []command.Offer { return d.commands.List() }
