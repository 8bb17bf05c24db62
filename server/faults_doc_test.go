package server_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const faultsDoc = "../docs/faults.md"

const faultsIntro = `# When a provider fails

This page shows what the user of a chat sees, and how many requests a provider's server gets, when a request fails. The test ` + "`TestFaults`" + ` in ` + "`server`" + ` generates the page (with ` + "`-update`" + `): it plays each fault in each API over real HTTP. It also checks that each turn ends exactly once, and that the next prompt continues the chat, with a history that the API accepts. [models.md](models.md#when-a-request-fails) describes the keys.

The rows ` + "`lasts`" + ` show a fault that happens in every request of the turn. The rows ` + "`once`" + ` show a fault that happens only in the first request; the requests after it succeed. A fault without a row ` + "`once`" + ` is tested only as a lasting one, and the chat then continues with another provider. The test's provider is ` + "`acme`" + `. To be fast, the test sets ` + "`maxRetries`" + ` to 2 (default 10), ` + "`prematureStopMaxRetries`" + ` to 1 (3), ` + "`maxAutoContinues`" + ` to 1 (3), delays to 0 (2 s to 60 s), and time limits to half a second (minutes).

The column "requests" counts the requests that reached the server. In the column "shown", *italics* are progress, “quotes” contain the model's text (“fine” is the answer to a request that succeeds), and **bold** text is a notice from eca.
`

// outcomes collects the cells of the matrix.
type outcomes struct {
	mu    sync.Mutex // guards cells
	cells map[string][2]outcome
}

func (o *outcomes) add(f fault, api string, lasting, once outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cells == nil {
		o.cells = map[string][2]outcome{}
	}
	o.cells[f.name+" "+api] = [2]outcome{lasting, once}
}

// compare compares the outcomes with the page, or writes the page.
func (o *outcomes) compare(t *testing.T) {
	t.Helper()
	got := o.render()
	if *update {
		if err := os.WriteFile(faultsDoc, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(faultsDoc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what happens (-page +now); run with -update and read the difference:\n%s", faultsDoc, diff)
	}
}

func (o *outcomes) render() string {
	var b strings.Builder
	b.WriteString(faultsIntro)
	for _, f := range faults() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| | API | requests | shown | end |\n|---|---|---|---|---|\n", f.name, f.what)
		for i, how := range []string{"lasts", "once"} {
			if i == 1 && f.endless() {
				continue
			}
			for _, g := range o.groups(f, i) {
				fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", how, g.apis, g.requests, g.shown, g.end)
			}
		}
	}
	return b.String()
}

type group struct {
	outcome
	apis string
}

// groups combines the APIs with the same outcome.
func (o *outcomes) groups(f fault, which int) []group {
	var out []group
next:
	for _, api := range apis {
		c := o.cells[f.name+" "+api][which]
		for i := range out {
			if out[i].outcome == c {
				out[i].apis += ", " + api
				continue next
			}
		}
		out = append(out, group{c, api})
	}
	if len(out) == 1 {
		out[0].apis = "all"
	}
	return out
}

var ports = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// requested is the address of a request: each API has its own.
var requested = regexp.MustCompile(`The request went to (\S+/v1)\S*\.`)

// normalize replaces parts that differ from run to run, and characters that a table cannot hold.
func normalize(s string, f fault) string {
	s = strings.ReplaceAll(s, "acme-"+f.name, "acme")
	s = ports.ReplaceAllString(s, "127.0.0.1:1")
	s = requested.ReplaceAllString(s, "The request went to $1/...")
	s = clock.ReplaceAllString(s, "Resuming at 00:00")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}
