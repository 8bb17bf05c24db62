package netrc

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const secret = "pa55-w0rd#1"

const sample = `# a comment with machine in it
machine api.example.com login me password ` + secret + `
machine api.example.com
	login other   # of the team
	password "two words \"quoted\" \\ back"
machine local.example port 8443 login me password third
machine nameless password fourth
machine halfway login me
macdef init
	machine not.an.entry password no
	put file

machine "Upper.Example" user me passwd fifth account acc
default login anonymous password nobody
machine after.example password sixth
`

func TestFind(t *testing.T) {
	for _, c := range []struct {
		key, password string // no password: no entry
	}{
		{"api.example.com", secret},
		{"me@api.example.com", secret},
		{"other@api.example.com", `two words "quoted" \ back`},
		{"nobody@api.example.com", ""},
		{"api.example.com:443", ""},
		{"local.example", ""},
		{"local.example:8443", "third"},
		{"me@local.example:8443", "third"},
		{"local.example:8444", ""},
		{"nameless", "fourth"},
		{"halfway", ""},
		{"not.an.entry", ""},
		{"upper.example", "fifth"},
		{"after.example", "sixth"},
		{"elsewhere.example", ""},
		{" nameless ", "fourth"},
	} {
		k, err := ParseKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		e, ok, err := FindData([]byte(sample), k.Machine, k.Login, k.Port)
		if err != nil || ok != (c.password != "") || e.Password() != c.password {
			t.Errorf("%s: %q, %v, %v", c.key, e.Password(), ok, err)
		}
	}
}

func TestParseKey(t *testing.T) {
	for text, want := range map[string]Key{
		"m":                    {Machine: "m"},
		"l@m":                  {Login: "l", Machine: "m"},
		"a@b.example@m:1":      {Login: "a@b.example", Machine: "m", Port: "1"},
		"[::1]:8080":           {Machine: "::1", Port: "8080"},
		"::1":                  {Machine: "::1"},
		"l@api.example.com:80": {Login: "l", Machine: "api.example.com", Port: "80"},
	} {
		if got, err := ParseKey(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", "@", "@m", "l@", "l@:1", ":1", "m:", "a b"} {
		if got, err := ParseKey(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// Errors name the line, without its text; the entries before it are returned.
func TestMistakes(t *testing.T) {
	first := "machine a password " + secret + "\n"
	for text, want := range map[string]string{
		"login x machine a":                           "line 1: login comes before",
		first + "machine b password two " + secret:    "line 2: expected machine, login",
		first + "\n\nmachine b password":              "line 4: password has no value",
		first + "machine b password \"" + secret:      "line 2: unclosed double quote",
		first + `machine b password "` + secret + `\`: "line 2: unclosed double quote",
		first + "machine b password \xff" + secret:    "line 2: invalid UTF-8",
		first + "machine":                             "line 2: machine has no value",
		first + `"" x`:                                "line 2: expected machine, login",
		"macdef":                                      "line 1: macdef has no value",
	} {
		entries, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
		if strings.HasPrefix(text, first) && (len(entries) == 0 || entries[0].Password() != secret) {
			t.Errorf("%q: the first entry is lost", text)
		}
	}
}

func TestFiles(t *testing.T) {
	home := t.TempDir()
	paths := DefaultPaths(home)
	if _, ok, err := FindKey(paths, "m"); ok || err != nil {
		t.Errorf("without files: %v, %v", ok, err)
	}
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	second := write("_netrc", "machine m password second", 0o600)
	e, ok, err := FindKey(paths, "m")
	if !ok || err != nil || e.Password() != "second" || e.File != second || e.Exposed {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
	first := write(".netrc", "\ufeffmachine m password first\r\nmachine", 0o644)
	e, ok, err = FindKey(paths, "m")
	if !ok || err != nil || e.Password() != "first" || e.Exposed != (runtime.GOOS != "windows") {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
	if _, ok, err := FindKey(paths, "absent"); ok || err == nil || !strings.Contains(err.Error(), first+": line 2") {
		t.Errorf("%v, %v", ok, err)
	}
	if _, _, err := FindKey(paths, "@"); err == nil {
		t.Error("a bad key is not refused")
	}
	for _, path := range []string{home, write("large", strings.Repeat(" ", maxSize+1), 0o600)} {
		if _, ok, err := Find([]string{path}, "m", "", ""); ok || err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", path, ok, err)
		}
	}
	if DefaultPaths("") != nil {
		t.Error("DefaultPaths returns files for a user without a home")
	}
}

func TestPasswordIsNotShown(t *testing.T) {
	e, _, _ := FindData([]byte(sample), "api.example.com", "", "")
	var out strings.Builder
	fmt.Fprintf(&out, "%v %+v %#v", e, e, &e)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "entry", e)
	data, err := json.Marshal(e)
	if err != nil || strings.Contains(out.String()+string(data), secret) {
		t.Errorf("%s %s %v", out.String(), data, err)
	}
}

// Parse always ends, and entries survive being quoted and parsed again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("machine \"\" password \"\\"))
	f.Add([]byte("macdef x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, _ := Parse(data)
		quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
		var text strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&text, "machine \"%s\" login \"%s\" account \"%s\" port \"%s\" password \"%s\"\n",
				quote.Replace(e.Machine), quote.Replace(e.Login), quote.Replace(e.Account), quote.Replace(e.Port), quote.Replace(e.Password()))
		}
		again, err := Parse([]byte(text.String()))
		if err != nil || len(again) != len(entries) {
			t.Fatalf("%q became %q: %d of %d entries, %v", data, text.String(), len(again), len(entries), err)
		}
		for i, e := range entries {
			if a := again[i]; a.Machine != e.Machine || a.Login != e.Login || a.Password() != e.Password() || a.Port != e.Port || a.Account != e.Account {
				t.Errorf("%q: entry %d changed", data, i)
			}
		}
	})
}
