package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// manual returns the manual page eca(1). It converts docs/commands.md, which a test compares with the
// help texts of the program.
func manual(path, version string, date time.Time) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, reference, found := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "<!-- commands:")
	if !found {
		return nil, fmt.Errorf("%s has no reference of the commands", path)
	}
	var page strings.Builder
	fmt.Fprintf(&page, ".TH ECA 1 %q %q\n.SH NAME\neca \\- coding\\-assistant daemon for editors\n.SH COMMANDS\n", date.UTC().Format(time.DateOnly), "eca "+version)
	literal := false
	for line := range strings.SplitSeq(reference, "\n") {
		name, heading := strings.CutPrefix(line, "### ")
		switch {
		case heading && !literal:
			page.WriteString(".SS " + roff(name) + "\n")
		case line == "```" && literal:
			page.WriteString(".fi\n")
			literal = false
		case line == "```":
			page.WriteString(".nf\n")
			literal = true
		case literal:
			page.WriteString(roff(line) + "\n")
		}
	}
	page.WriteString(".SH SEE ALSO\nhttps://github.com/seed-dec29ce4/eca/tree/main/docs\n")
	return []byte(page.String()), nil
}

// roff escapes a line of text for roff.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
