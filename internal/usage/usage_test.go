package usage_test

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/internal/usage"
)

func tree(ran *string) *cobra.Command {
	root := &cobra.Command{Use: "p", Version: "1.2", SilenceUsage: true, SilenceErrors: true}
	group := &cobra.Command{Use: "group"}
	leaf := &cobra.Command{Use: "leaf FILE", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
		*ran = args[0]
		return usage.Choice("color", args[0], "red", "green", "blue")
	}}
	leaf.Flags().Int("count", 1, "how many")
	leaf.Flags().String("name", "", "whose it is")
	leaf.Flags().StringArray("each", nil, "one of several")
	leaf.Flags().Duration("limit", 0, "how long")
	leaf.Flags().Bool("all", false, "all of them")
	leaf.MarkFlagsMutuallyExclusive("count", "all")
	group.AddCommand(leaf)
	root.AddCommand(group)
	usage.Strict(root)
	return root
}

func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                         `p: a command is missing; p --help lists them`,
		"group":                    `p group: a command is missing; p group --help lists them`,
		"gruop":                    `p: unknown command "gruop"; did you mean group?`,
		"zebra":                    `p: unknown command "zebra"; p --help lists the commands`,
		"group leav":               `p group: unknown command "leav"; did you mean leaf?`,
		"help gruop":               `p: unknown command "gruop"; did you mean group?`,
		"help group leav":          `p group: unknown command "leav"; did you mean leaf?`,
		"help group leaf red":      `p group leaf: it has no commands, so no "red"`,
		"help group leaf":          ``,
		"help":                     ``,
		"gruop --help":             `p: unknown command "gruop"; did you mean group?`,
		"group leav -h":            `p group: unknown command "leav"; did you mean leaf?`,
		"group leaf --help":        ``,
		"gruop --count 2":          `p: unknown command "gruop"; did you mean group?`,
		"group leav --zork":        `p group: unknown command "leav"; did you mean leaf?`,
		"group leaf":               `p group leaf: an argument is missing`,
		"group leaf a b":           `p group leaf: too many arguments: "b"`,
		"group leaf --cuont 2 red": `p group leaf: unknown flag --cuont; did you mean --count?`,
		"group leaf -x red":        `p group leaf: unknown flag -x; see p group leaf --help`,
		"group leaf red --count":   `p group leaf: --count needs a value: how many`,
		"group leaf --count x red": `p group leaf: --count cannot be "x": it must be a whole number`,
		"group leaf --count 99999999999999999999 red": `p group leaf: --count cannot be "99999999999999999999": it must be a whole number of ordinary size`,
		"group leaf --limit abc red":                  `p group leaf: --limit cannot be "abc": it must be a duration such as 30s, 5m or 1h`,
		"group leaf --all=2x red":                     `p group leaf: --all cannot be "2x": it must be true or false`,
		"group leaf --name= red":                      `p group leaf: --name is empty; give it a value, or leave it out: whose it is`,
		"group leaf --each= red":                      `p group leaf: --each is empty; give it a value, or leave it out: one of several`,
		"group leaf --name=x --each=y red":            ``,
		"group leaf --count=2 --all red":              `p group leaf: --all and --count cannot be used together`,
		"group leaf gren":                             `p group leaf: --color must be red, green or blue, not "gren"; did you mean green?`,
		"group leaf red":                              ``,
		"group leaf --count=2 blue":                   ``,
	} {
		var ran string
		root := tree(&ran)
		root.SetArgs(strings.Fields(line))
		var out strings.Builder
		root.SetOut(&out)
		_, err := usage.Execute(t.Context(), root)
		if want == "" {
			out.Reset()
		}
		if reported := usage.Report(&out, err); reported != (want != "") || !strings.HasPrefix(out.String(), want) || reported && !strings.Contains(out.String(), "\nUsage: p") {
			t.Errorf("%q: %q (%v), want %q", line, out.String(), err, want)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, flag := range []string{"--version", "-v"} {
		var ran string
		root := tree(&ran)
		var out strings.Builder
		root.SetOut(&out)
		root.SetArgs([]string{flag})
		if err := root.Execute(); err != nil || out.String() != "p 1.2\n" {
			t.Errorf("%s: %q, %v", flag, out.String(), err)
		}
	}
}

// Text is escaped the same, however it is divided into writes.
func TestVisible(t *testing.T) {
	text := "é\x1b[2J\u202e👩\U000e0067\n"
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		w := usage.Visible(&out)
		for part := range slices.Chunk([]byte(text), size) {
			if n, err := w.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if want := `é\u001b[2J\u202e👩\udb40\udc67` + "\n"; out.String() != want {
			t.Errorf("%d bytes at a time: %q, want %q", size, out.String(), want)
		}
		if usage.Raw(w) != io.Writer(&out) {
			t.Error("Raw returns another stream")
		}
	}
}

func TestMessageNamesAPathOnce(t *testing.T) {
	failed := &fs.PathError{Op: "open", Path: "a/b", Err: fs.ErrPermission}
	for _, c := range []struct{ format, want string }{
		{"%w", "a/b: permission denied"},
		{"cannot read a/b: %w", "cannot read a/b: permission denied"},
		{"cannot read a/b/c: %w", "cannot read a/b/c: a/b: permission denied"},
		{"--image: %w", "--image: a/b: permission denied"},
	} {
		if got := usage.Message(fmt.Errorf(c.format, failed)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
