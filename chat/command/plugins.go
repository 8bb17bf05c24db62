package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/plugins"
)

// Plugins manages plugins (eca-features.md 14, 21). A change is in effect when its method returns.
type Plugins interface {
	Installed() *plugins.Set
	// Problems returns all problems of the configuration, to which plugins contribute.
	Problems() []config.Problem
	Sources() []plugins.State
	// Fetch fetches a source that has not been fetched yet.
	Fetch(ctx context.Context, source string) error
	// Update fetches the newest commit of a source. It returns the old and the new commit.
	Update(ctx context.Context, source string) (before, after string, err error)
	Install(ctx context.Context, ref string) (plugins.Offer, error)
	// Uninstall returns the entries that it removed from the configuration.
	Uninstall(ref string) ([]string, error)
}

// shortCommit is how many characters of a commit's id are shown if the id is only for comparison.
const shortCommit = 12

func abbreviate(commit string) string { return commit[:min(len(commit), shortCommit)] }

// ListPlugins describes the installed plugins and what the sources offer. If source is set, it
// describes only that source, and fetches it first if necessary.
func ListPlugins(ctx context.Context, p Plugins, source string) (string, error) {
	if source != "" {
		if err := p.Fetch(ctx, source); err != nil {
			return "", err
		}
	}
	set := p.Installed()
	problems := slices.Clone(set.Problems)
	var b strings.Builder
	if source == "" {
		writeInstalled(&b, set)
	}
	for _, s := range p.Sources() {
		if source != "" && s.Name != source {
			continue
		}
		if source != "" && s.Problem != "" {
			return "", fmt.Errorf("the source %s (%s): %s", s.Name, s.Shown(), s.Problem)
		}
		writeSource(&b, s, set)
		problems = append(problems, newProblems(s.Ignored, problems)...)
	}
	if len(problems) > 0 {
		b.WriteString("\nNot used because of errors:\n\n")
		writeProblems(&b, problems)
	}
	return b.String(), nil
}

// newProblems returns the problems that are not among the known ones.
func newProblems(problems, known []config.Problem) []config.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p config.Problem) bool { return slices.Contains(known, p) })
}

func writeProblems(b *strings.Builder, problems []config.Problem) {
	for _, problem := range problems {
		fmt.Fprintf(b, "- %s\n", problem)
	}
}

func writeInstalled(b *strings.Builder, set *plugins.Set) {
	if len(set.Plugins) == 0 {
		b.WriteString("No plugins are installed. `/plugin-install <name>` installs one.\n")
		return
	}
	b.WriteString("### Installed\n\n")
	for _, p := range set.Plugins {
		fmt.Fprintf(b, "- **%s** from %s", p.Name, p.Source)
		if p.NeededBy != "" {
			fmt.Fprintf(b, ", needed by %s", p.NeededBy)
		}
		if p.Description != "" {
			b.WriteString(": " + p.Description)
		}
		fmt.Fprintf(b, "\n  `%s`\n", p.Dir)
	}
}

func writeSource(b *strings.Builder, s plugins.State, set *plugins.Set) {
	fmt.Fprintf(b, "\n### Source %s\n\n`%s`", s.Name, s.Shown())
	switch {
	case s.At != "" && s.Commit != "":
		fmt.Fprintf(b, " pinned to %s", s.Commit)
	case s.At != "":
		fmt.Fprintf(b, " at %s", s.At)
	}
	b.WriteString("\n\n")
	if s.Problem != "" {
		b.WriteString(s.Problem)
		if s.Git && s.At == "" {
			fmt.Fprintf(b, "; `/plugins %s` fetches it.", s.Name)
		}
		b.WriteString("\n")
		return
	}
	for _, o := range s.Offers {
		fmt.Fprintf(b, "- **%s**", o.Name)
		if slices.ContainsFunc(set.Plugins, func(p plugins.Plugin) bool { return p.Name == o.Name && p.Source == o.Source }) {
			b.WriteString(" ✅")
		}
		if o.Description != "" {
			b.WriteString(": " + o.Description)
		}
		b.WriteString("\n")
	}
	if len(s.Offers) == 0 {
		b.WriteString("It has no plugins.\n")
	}
}

func (c *Commands) plugins(ctx context.Context, in input) (string, error) {
	return ListPlugins(ctx, c.deps.Plugins(), in.arg())
}

// InstallPlugin installs a plugin and describes the result.
func InstallPlugin(ctx context.Context, p Plugins, ref string) (string, error) {
	before := p.Problems()
	offer, err := p.Install(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("%s was not installed: %w", ref, err)
	}
	id := offer.Name + "@" + offer.Source
	set := p.Installed()
	if !slices.ContainsFunc(set.Plugins, func(p plugins.Plugin) bool { return p.ID() == id }) {
		var causes []error
		for _, problem := range set.Problems {
			causes = append(causes, errors.New(problem.String()))
		}
		return "", fmt.Errorf("%s is in the configuration now, but cannot be used: %w", id, cmp.Or(errors.Join(causes...), errors.New("it was not found")))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Installed %s. Its contents take effect with the next prompt.\n", id)
	for _, other := range set.Plugins {
		if other.NeededBy == id {
			fmt.Fprintf(&b, "- It needs %s, which is used as well.\n", other.ID())
		}
	}
	if problems := newProblems(p.Problems(), before); len(problems) > 0 {
		b.WriteString("\nMistakes in its contents:\n\n")
		writeProblems(&b, problems)
	}
	return b.String(), nil
}

func (c *Commands) pluginInstall(ctx context.Context, in input) (string, error) {
	return InstallPlugin(ctx, c.deps.Plugins(), in.arg())
}

// UninstallPlugin uninstalls a plugin.
func UninstallPlugin(p Plugins, ref string) (string, error) {
	out, err := p.Uninstall(ref)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Uninstalled %s.\n", strings.Join(out, ", "))
	for _, loaded := range p.Installed().Plugins {
		if loaded.NeededBy != "" && (slices.Contains(out, loaded.ID()) || slices.Contains(out, loaded.Name)) {
			text += fmt.Sprintf("- %s is still used: %s needs it.\n", loaded.ID(), loaded.NeededBy)
		}
	}
	return text, nil
}

func (c *Commands) pluginUninstall(_ context.Context, in input) (string, error) {
	return UninstallPlugin(c.deps.Plugins(), in.arg())
}

// UpdatePlugins fetches the newest commit of a source and describes the result.
func UpdatePlugins(ctx context.Context, p Plugins, source string) (string, error) {
	before, after, err := p.Update(ctx, source)
	switch {
	case err != nil:
		return "", err
	case before == after:
		return fmt.Sprintf("%s is up to date: %s.\n", source, after), nil
	case before == "":
		return fmt.Sprintf("%s was fetched: %s.\n", source, after), nil
	}
	return fmt.Sprintf("%s was %s and is %s now. The contents of its plugins take effect with the next prompt.\n", source, abbreviate(before), after), nil
}

func (c *Commands) pluginUpdate(ctx context.Context, in input) (string, error) {
	return UpdatePlugins(ctx, c.deps.Plugins(), in.arg())
}
