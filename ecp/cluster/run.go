package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// docVersion is the version of documents and messages.
const docVersion = 1

// TrustAnyone as a key makes a worker run unsigned manifests.
const TrustAnyone = "any"

// Doc describes a run. It never changes.
type Doc struct {
	V        int            `json:"v"`
	Run      string         `json:"run"`
	Name     string         `json:"name"`
	Created  time.Time      `json:"created"`
	Program  string         `json:"program"`  // version of ecp
	Bundle   string         `json:"bundle"`   // digest of the manifest and the files that it refers to
	Manifest string         `json:"manifest"` // its name in the bundle
	Target   string         `json:"target"`
	Limits   map[string]int `json:"limits,omitempty"` // concurrent attempts, by model
	Replicas int            `json:"replicas"`
	Settings Settings       `json:"settings"`
}

// Settings are the options of a run that its attempts depend on.
type Settings struct {
	Timeout      time.Duration     `json:"timeout,omitempty"`
	StartTimeout time.Duration     `json:"start_timeout,omitempty"`
	Repeat       int64             `json:"repeat,omitempty"`
	Filter       string            `json:"filter,omitempty"` // of scenarios' names
	Config       map[string]any    `json:"config,omitempty"`
	Variants     []runtime.Variant `json:"variants,omitempty"`
	JudgeModel   string            `json:"judge_model,omitempty"`
	JudgeVotes   int64             `json:"judge_votes,omitempty"`
	Budget       runtime.Budget    `json:"budget"`
}

// Apply copies settings into options.
func (s Settings) Apply(o *runtime.Options) error {
	o.Timeout, o.StartTimeout, o.Repeat, o.Config, o.Variants, o.Budget = s.Timeout, s.StartTimeout, s.Repeat, s.Config, s.Variants, s.Budget
	if s.Filter == "" {
		return nil
	}
	name, err := regexp.Compile(s.Filter)
	if err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	o.Filter = func(c runtime.Case) bool { return name.MatchString(c.Scenario.Name) }
	return nil
}

// signedDoc is a document with the key and the signature of its author.
type signedDoc struct {
	Doc       string `json:"doc"`
	Key       string `json:"key,omitempty"`       // public nkey
	Signature string `json:"signature,omitempty"` // of doc
}

// Stored is a stored document with the key that signed it.
type Stored struct {
	Doc
	SignedBy string // public nkey; empty if unsigned
}

func (c *Cluster) sign(d Doc) ([]byte, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	s := signedDoc{Doc: string(raw)}
	if c.key != nil {
		sum, err := c.key.Sign(raw)
		if err != nil {
			return nil, err
		}
		s.Key = c.key.Public()
		s.Signature = base64.StdEncoding.EncodeToString(sum)
	}
	return json.Marshal(s)
}

// readDoc decodes a document and verifies its signature, if it has one.
func readDoc(raw []byte) (*Stored, error) {
	var s signedDoc
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("invalid document of a run: %w", err)
	}
	if s.Key != "" {
		signature, err := base64.StdEncoding.DecodeString(s.Signature)
		if err != nil {
			return nil, fmt.Errorf("the document's signature: %w", err)
		}
		if err := jet.Verify(s.Key, []byte(s.Doc), signature); err != nil {
			return nil, fmt.Errorf("the document's signature: %w", err)
		}
	}
	out := &Stored{SignedBy: s.Key}
	if err := json.Unmarshal([]byte(s.Doc), &out.Doc); err != nil {
		return nil, fmt.Errorf("invalid document of a run: %w", err)
	}
	if out.V > docVersion {
		return nil, fmt.Errorf("the run was submitted by ecp %s, whose documents have version %d; this ecp reads only versions up to %d: update it", out.Program, out.V, docVersion)
	}
	return out, nil
}

// Doc returns the document of a run.
func (c *Cluster) Doc(ctx context.Context, run string) (*Stored, error) {
	if !validToken(run) {
		return nil, fmt.Errorf("%q is not a valid run id", run)
	}
	kv, err := c.runs(ctx)
	if err != nil {
		return nil, err
	}
	raw, _, err := kv.Get(ctx, docKey(run))
	if errors.Is(err, jet.ErrNotFound) {
		return nil, fmt.Errorf("the run %s does not exist: ecp cluster runs lists the runs", run)
	}
	if err != nil {
		return nil, fmt.Errorf("read the document of the run %s: %w", run, err)
	}
	return readDoc(raw)
}

// Submission is the input of Submit.
type Submission struct {
	Manifest *runtime.Manifest // its target is the target of the run
	Include  []string          // further files and folders beside the manifest
	Settings Settings
	Limits   map[string]int
	Replicas int // copies of the run's data in the cluster; 0 means three if there are three servers
	Program  string
	Now      func() time.Time
}

// Submit uploads the files of a run and creates the run. The run starts when a process becomes its
// leader.
func (c *Cluster) Submit(ctx context.Context, s Submission) (*Stored, error) {
	if err := checkLimits(s); err != nil {
		return nil, err
	}
	files, err := bundleFiles(s.Manifest, s.Include)
	if err != nil {
		return nil, err
	}
	replicas, err := c.conn.Setup(ctx, layout(), s.Replicas)
	if err != nil {
		return nil, err
	}
	id, err := newRunID()
	if err != nil {
		return nil, err
	}
	d := Doc{
		V: docVersion, Run: id, Name: s.Manifest.Name, Created: s.Now().UTC(), Program: s.Program, Manifest: filepath.Base(s.Manifest.Path), Target: s.Manifest.Target,
		Limits: s.Limits, Replicas: replicas, Settings: s.Settings,
	}
	if d.Bundle, err = c.upload(ctx, filepath.Dir(s.Manifest.Path), files); err != nil {
		return nil, err
	}
	raw, err := c.sign(d)
	if err != nil {
		return nil, err
	}
	if err := c.conn.RetryOutages(ctx, "make the run "+id, func() error { return c.create(ctx, d, raw) }); err != nil {
		return nil, fmt.Errorf("make the run %s: %w", id, err)
	}
	return readDoc(raw)
}

// checkLimits refuses limits that cannot be enforced. A lane is a model in one kind of environment,
// so a limit of a model in two kinds would allow twice as many attempts.
func checkLimits(s Submission) error {
	var kinds []string
	for _, sc := range s.Manifest.Scenarios {
		if kind := Kind(sc.Setup); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(s.Limits) > 0 && len(kinds) > 1 {
		return fmt.Errorf("a limit cannot be enforced across several kinds of environments (%s): submit the scenarios of each kind as a separate run", strings.Join(kinds, ", "))
	}
	return nil
}

// upload packs files into an archive and stores it under its digest.
func (c *Cluster) upload(ctx context.Context, dir string, files []string) (string, error) {
	f, err := os.CreateTemp("", "ecp-bundle-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	name, err := pack(dir, files, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("pack the manifest's files: %w", err)
	}
	return name, c.conn.RetryOutages(ctx, "upload the manifest's files", func() error {
		fixtures, err := c.conn.Blobs(ctx, fixturesBucket)
		if err != nil {
			return err
		}
		return fixtures.PutFresh(ctx, name, fixtureAge/2, func() (io.ReadCloser, error) { return os.Open(f.Name()) })
	})
}

// create creates the data of a run. It publishes the message that starts the run last.
func (c *Cluster) create(ctx context.Context, d Doc, doc []byte) error {
	if _, err := c.conn.Setup(ctx, jet.Layout{Streams: []jet.StreamSpec{resultStream(d.Run)}}, d.Replicas); err != nil {
		return err
	}
	kv, err := c.runs(ctx)
	if err != nil {
		return err
	}
	if err := kv.Update(ctx, docKey(d.Run), doc, 0); err != nil && !errors.Is(err, jet.ErrConflict) { // from an earlier try
		return err
	}
	if err := c.setState(ctx, d.Run, State{State: StateRunning}); err != nil {
		return err
	}
	if err := c.conn.EnsureConsumer(ctx, planStream, jet.ConsumerSpec{Name: "plan-" + d.Run, Subject: planSubject(d.Run), Lease: c.lease, MaxInFlight: 1}); err != nil {
		return err
	}
	plan, err := c.conn.Stream(ctx, planStream)
	if err != nil {
		return err
	}
	_, err = plan.Append(ctx, jet.Message{Subject: planSubject(d.Run), Data: []byte("{}")}, 0, planSubject(d.Run))
	if errors.Is(err, jet.ErrConflict) {
		return nil // from an earlier try whose answer was lost
	}
	return err
}

// Fetch writes the files of a run into an empty folder and returns its manifest as submitted.
func (c *Cluster) Fetch(ctx context.Context, d *Stored, dir string) (*runtime.Manifest, error) {
	f, err := os.CreateTemp("", "ecp-bundle-")
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	err = c.conn.RetryOutages(ctx, "download the manifest's files", func() error {
		fixtures, err := c.conn.Blobs(ctx, fixturesBucket)
		if err != nil {
			return err
		}
		return fixtures.Get(ctx, d.Bundle, maxBundleBytes, func() (io.Writer, error) {
			_, err := f.Seek(0, io.SeekStart)
			return f, errors.Join(err, f.Truncate(0))
		})
	})
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = unpack(f, dir)
	}
	if err != nil {
		return nil, err
	}
	if !filepath.IsLocal(d.Manifest) {
		return nil, fmt.Errorf("%q is not the name of a manifest", d.Manifest)
	}
	m, _, err := runtime.Load(ctx, filepath.Join(dir, d.Manifest))
	if err != nil {
		return nil, err
	}
	m.Target = d.Target
	return m, nil
}

// Kind returns the kind of environment that a scenario needs.
func Kind(s runtime.Setup) string {
	if s.Environment == nil {
		return KindHost
	}
	return s.Environment.Kind
}

// KindHost is the kind of scenarios without an environment: their agents run in the worker's own
// environment.
const KindHost = "host"
