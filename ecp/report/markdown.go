package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// maxListed limits how many scenarios a summary lists.
const maxListed = 200

// Markdown writes a summary: the counts, the comparisons, and the scenarios that did not pass.
func (r *Report) Markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "## %s %s\n\n", statusEmoji(r.Status), markdownText(r.Name))
	fmt.Fprintf(&b, "| Scenarios | Passed | Failed | Errors | Checks passed | Time |\n|--:|--:|--:|--:|--:|--:|\n| %d | %d | %d | %d | %d of %d | %.1f s |\n\n",
		len(r.Scenarios), r.Counts.Passed, r.Counts.Failed, r.Counts.Error, r.Passed, r.Total, float64(r.DurationMS)/1000)
	if r.Agent != nil {
		fmt.Fprintf(&b, "Agent: %s\n\n", markdownText(r.Agent.Name))
	}
	if r.Interrupted {
		b.WriteString("**The run was interrupted; scenarios are missing.**\n\n")
	}
	r.variantTable(&b)
	r.baseline(&b)
	for _, line := range r.Sentences() {
		fmt.Fprintf(&b, "%s.\n\n", markdownText(line))
	}
	listed := 0
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if s.Status == Passed {
			continue
		}
		if listed++; listed > maxListed {
			b.WriteString("\n… and more\n")
			break
		}
		fmt.Fprintf(&b, "- %s **%s**\n", statusEmoji(s.Status), markdownText(s.Title()))
		for _, line := range s.Failures() {
			fmt.Fprintf(&b, "  - %s\n", markdownText(shorten(line, 500)))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// variantTable writes a table of the variants of a matrix.
func (r *Report) variantTable(b *bytes.Buffer) {
	if len(r.Variants) == 0 {
		return
	}
	b.WriteString("| Variant | Passed | Failed | Errors | Checks passed | Tokens | Cost | Time |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for i := range r.Variants {
		v := &r.Variants[i]
		cost := ""
		if v.CostUSD != nil {
			cost = fmt.Sprintf("$%.4f", *v.CostUSD)
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d of %d | %d | %s | %.1f s |\n", markdownText(v.Name()), v.Counts.Passed, v.Counts.Failed, v.Counts.Error, v.Passed, v.Total, v.Tokens, cost, float64(v.DurationMS)/1000)
	}
	b.WriteByte('\n')
}

func (r *Report) baseline(b *bytes.Buffer) {
	c := r.Baseline
	if c == nil {
		return
	}
	fmt.Fprintf(b, "Compared with the baseline: %d new failures, %d new passes; %.1f%% of checks passed, %.1f%% before.\n\n", len(c.NewFail), len(c.NewPass), 100*c.PassRate[1], 100*c.PassRate[0])
	for _, name := range c.NewFail {
		fmt.Fprintf(b, "- new failure: %s\n", markdownText(name))
	}
	if len(c.NewFail) > 0 {
		b.WriteByte('\n')
	}
}

func statusEmoji(status string) string {
	switch status {
	case Passed:
		return "✅"
	case Failed:
		return "❌"
	}
	return "⚠️"
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// markdownText escapes a text for a line of Markdown.
func markdownText(s string) string {
	s = strings.Join(strings.Fields(xmlText(s)), " ")
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`, "#", `\#`, "&", "&amp;", "@", "@\u200b", "!", `\!`, "~", `\~`).Replace(s)
}

// Annotations writes workflow commands of GitHub, which show errors at the lines of the manifest.
func (r *Report) Annotations(w io.Writer, file string) error {
	var b bytes.Buffer
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if s.Status == Passed {
			continue
		}
		text := strings.Join(s.Failures(), "\n")
		if text == "" {
			text = s.Status
		}
		fmt.Fprintf(&b, "::error file=%s,line=%d,title=%s::%s\n", annotationProperty(file), max(s.Line, 1), annotationProperty("ECP "+s.Status+": "+s.Title()), annotationMessage(shorten(xmlText(text), 2000)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// annotationMessage escapes the message of a workflow command.
func annotationMessage(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// annotationProperty escapes the value of a property of a workflow command.
func annotationProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(annotationMessage(xmlText(s)))
}
