package runtime

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/grade"
)

// identifier computes the keys and digests of cases. A key identifies a case regardless of its
// position in the manifest. A digest changes with everything that determines the case.
type identifier struct {
	manifest  *Manifest
	opts      Options
	dir       string            // of the manifest
	trees     map[string]string // digests of folders
	programs  map[string]string // digests of the files that a target names, by target
	bases     map[[2]int]string // the part of a digest that cases of a variant and a scenario share
	keyCounts map[string]int    // how often each key was computed
}

// identity identifies a case in all variants. It is small, because there may be many.
type identity struct {
	id     [idLength]byte
	record [16]byte // hash of the record
}

// idLength is the length of the ID of a case.
const idLength = 26

func newIdentifier(m *Manifest, o Options) *identifier {
	return &identifier{
		manifest: m, opts: o, dir: filepath.Dir(m.Path),
		trees: map[string]string{}, programs: map[string]string{}, bases: map[[2]int]string{}, keyCounts: map[string]int{},
	}
}

// identify identifies the next case of a scenario, with a record of its dataset if it has one.
func (i *identifier) identify(sc Scenario, record map[string]string) (out identity, err error) {
	name, raw := "", []byte(nil)
	if record != nil {
		if name, err = recordID(record, sc.Setup.IDField); err == nil {
			raw, err = json.Marshal(record)
		}
	}
	copy(out.id[:], i.key(scenarioID(sc), name))
	sum := sha256.Sum256(raw)
	copy(out.record[:], sum[:])
	return out, err
}

// newCase returns a case of a scenario, with a record of its dataset if it has one.
func (i *identifier) newCase(sc Scenario, scenario string, caseID identity, record map[string]string) Case {
	c := Case{ID: string(caseID.id[:]), scenario: scenario, Scenario: sc, Record: record, recordHash: caseID.record}
	for _, alias := range sc.Setup.Aliases {
		name := ""
		if record != nil {
			name, _ = recordID(record, sc.Setup.IDField) // identify has checked this
		}
		c.Aliases = append(c.Aliases, i.caseHash(alias, name))
	}
	return c
}

func (i *identifier) caseHash(scenario, record string) string {
	return shortHash(idLength, "ecp-case-1", i.manifest.Name, scenario, record)
}

// key identifies a case by suite, scenario and record. Cases with equal names get a number.
func (i *identifier) key(scenario, record string) string {
	for {
		key := i.caseHash(scenario, record)
		n := i.keyCounts[key]
		i.keyCounts[key]++
		if n == 0 {
			return key
		}
		if record != "" {
			record += "~" + strconv.Itoa(n+1)
		} else {
			scenario += "~" + strconv.Itoa(n+1)
		}
	}
}

// scenarioID returns the identity of a scenario across versions of its manifest.
func scenarioID(s Scenario) string {
	if s.Setup.ID != "" {
		return s.Setup.ID
	}
	return slug(s.Name)
}

// slug returns a name in lower case, with a dash for each run of characters other than letters and
// digits.
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return ('a' > r || r > 'z') && ('0' > r || r > '9') && r < 0x80
	})
	return strings.Join(words, "-")
}

// recordID returns the identity of a record: the value of its id field, or a hash of its contents.
func recordID(record map[string]string, field string) (string, error) {
	if field != "" {
		id, ok := record[field]
		if !ok {
			return "", fmt.Errorf("it has no %q, which id_field names", field)
		}
		return id, nil
	}
	raw, err := json.Marshal(record)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// variantKey identifies a variant: its agent and configuration.
func (i *identifier) variantKey(v Variant) string {
	target := i.manifest.Target
	if v.Target != "" {
		target = v.Target
	}
	raw := canonicalJSON(struct {
		Labels map[string]string
		Target string
		Config []map[string]any
	}{v.Labels, target, []map[string]any{i.opts.Config, v.Config}})
	return shortHash(16, "ecp-variant-1", raw)
}

// digest returns a hash of everything that determines a case, except the agent's self-description,
// which is compared later. sc is the scenario of the case before a record was filled in.
func (i *identifier) digest(c Case, sc Scenario) string {
	at := [2]int{c.Position.Variant, c.Position.Scenario}
	base, ok := i.bases[at]
	if !ok {
		base = i.digestBase(c, sc)
		i.bases[at] = base
	}
	setup, fixture := c.Scenario.Setup, ""
	if w := setup.Workspace; w != nil && w.Copy != "" {
		fixture = i.treeDigest(w.Copy)
	}
	if e := setup.Environment; e != nil && e.Dockerfile != "" {
		fixture += " " + i.treeDigest(filepath.Dir(e.Dockerfile))
	}
	if setup.Tests != "" {
		fixture += " " + i.treeDigest(setup.Tests)
	}
	return shortHash(52, "ecp-digest-2", base, string(c.recordHash[:]), fixture)
}

// digestBase returns the part of a digest that cases of a variant and a scenario share.
func (i *identifier) digestBase(c Case, sc Scenario) string {
	setup := sc.Setup
	setup.ID, setup.Aliases, setup.IDField, setup.Repeat = "", nil, "", 0
	judge := ""
	if slices.ContainsFunc(sc.Steps, usesJudge) {
		judge = i.opts.Judge
	}
	return shortHash(52, "ecp-base-1", canonicalJSON(struct {
		Steps           []Step
		Setup           Setup
		Target, Program string
		Config, Variant map[string]any
		Judge           string
		Reference       bool
	}{sc.Steps, setup, c.target, i.programDigest(c.target), i.opts.Config, c.variant.Config, judge, i.opts.Reference}))
}

func usesJudge(st Step) bool {
	return slices.ContainsFunc(slices.Concat(st.Graders, st.Constraints.Checks), func(s grade.Spec) bool { return s.Type == grade.LLMJudge })
}

// treeDigest returns a digest of a folder: paths, contents, symlinks, and executable bits. Of files beyond the
// size limit of a workspace, it covers the size and the modification time instead of the contents,
// because reading them could take hours. If a file cannot be read, the error is part of the digest;
// the attempt will report it.
func (i *identifier) treeDigest(path string) string {
	path = resolveIn(i.dir, path)
	if known, ok := i.trees[path]; ok {
		return known
	}
	h := sha256.New()
	files, size := 0, int64(0)
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; files > maxFixtureFiles {
			return fs.SkipAll
		}
		rel, err := filepath.Rel(path, name)
		if err != nil || e.IsDir() {
			fmt.Fprintf(h, "%q\n", rel)
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		digest := fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		if size += info.Size(); size <= maxFixtureBytes {
			digest, err = fingerprint(name, e)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %q %t\n", rel, digest, info.Mode()&0o111 != 0)
		return nil
	})
	sum := hex.EncodeToString(h.Sum(nil))
	if err != nil {
		sum += " " + err.Error()
	}
	i.trees[path] = sum
	return sum
}

// maxProgram is the size in bytes above which a digest of the agent covers the size and the
// modification time of a file instead of its contents.
const maxProgram = 64 << 20

// programDigest returns a digest of the files that a command line names: the program, and scripts. It is
// empty for a URL.
func (i *identifier) programDigest(target string) string {
	if IsURL(target) {
		return ""
	}
	if known, ok := i.programs[target]; ok {
		return known
	}
	h := sha256.New()
	for n, word := range targetFiles(target, i.opts.Path) {
		info, err := os.Stat(word)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if info.Size() > maxProgram {
			fmt.Fprintf(h, "%d %d %s\n", n, info.Size(), info.ModTime().UTC())
			continue
		}
		digest, err := fingerprint(word, fs.FileInfoToDirEntry(info))
		fmt.Fprintf(h, "%d %q %v\n", n, digest, err)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	i.programs[target] = sum
	return sum
}

// targetFiles lists the words of a command line that may be files. The first word is looked up in
// PATH.
func targetFiles(target, path string) []string {
	words := strings.FieldsFunc(target, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;|&()<>=$", r) })
	if len(words) == 0 || strings.ContainsAny(words[0], `/\`) {
		return words
	}
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, words[0]); isFile(file) {
			words[0] = file
			break
		}
	}
	return words
}

// canonicalJSON returns a value as text, where equal values have equal texts.
func canonicalJSON(v any) string {
	raw, err := json.Marshal(v) // keys of maps are sorted
	if err != nil {             // a number that JSON cannot represent
		return fmt.Sprintf("%+v", v)
	}
	return string(raw)
}

// shortHash returns the beginning of a hash of texts, in lower case letters and digits.
func shortHash(length int, texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:length])
}
