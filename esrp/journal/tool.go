package journal

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/tools"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// ServiceTool is the service of tool calls; the operation is the tool's full name.
const ServiceTool = "tool"

// maxFile limits the size of a file whose content before and after a call is recorded.
const maxFile = 16 << 20

// Tool wraps a tool so that each call that runs is recorded, with the contents, before and after
// the call, of the files that it reports to tools.FileLog. It must be the outermost wrapper, so
// that it records results after other wrappers have cut them and removed secrets.
func (j *Journal) Tool(t tools.Tool) tools.Tool { return tool{t, j} }

type tool struct {
	tools.Tool
	j *Journal
}

// Run implements tools.Tool.
func (t tool) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	if !t.j.o.Enabled() {
		return t.Tool.Run(ctx, call, out)
	}
	o := origin{id: t.j.id(), at: t.j.o.Now(), chat: call.ChatID, agent: call.Agent}
	o.cause, o.turn, o.parent = t.j.chats.tool(o.id, call.ChatID, call.ID)
	t.j.recordCall(o, t.Spec(), call)
	files := &fileChangeLog{log: call.Files}
	if call.Files != nil {
		call.Files = files
	}
	var res tools.Result
	err := errPanicked
	defer func() { t.j.recordResult(o, res, err, ctx.Err(), files.list()) }()
	res, err = t.Tool.Run(ctx, call, out)
	return res, err
}

var errPanicked = errors.New("the tool panicked")

// recordCall records that a tool runs.
func (j *Journal) recordCall(o origin, spec tools.Spec, call tools.Call) {
	variant := "native"
	if spec.Origin == "mcp" {
		variant = "mcp:" + spec.Server
	}
	j.toolRequest(o, spec.FullName(), variant, call.ID, call.Arguments)
}

// toolRequest records the request of a tool call.
func (j *Journal) toolRequest(o origin, name, variant, callID string, arguments json.RawMessage) {
	r := o.request(esrp.Target{Service: ServiceTool, Operation: name, Variant: &variant})
	j.record(Requested, func(b *bodies) esrp.Value {
		r.Inputs = []esrp.Body{b.bytes("arguments", "application/json", cleanJSON(arguments, b.clean))}
		r.Params = params(map[string]string{"call_id": callID}, nil)
		v, _ := r.Sealed() // records of eca contain only numbers that can be hashed
		return v
	})
}

// recordResult records the outcome of a call.
func (j *Journal) recordResult(o origin, res tools.Result, err, stopped error, files []fileChange) {
	r, event := o.response(j.o.Now()), Completed
	outputs := slices.Clone(res.Outputs) // the engine continues to use its own slice
	j.recordAs(func(b *bodies) (string, esrp.Value) {
		for _, text := range outputs {
			r.Outputs = append(r.Outputs, b.text("output", "text/plain", text))
		}
		for _, i := range res.Images {
			r.Outputs = append(r.Outputs, b.bytes("image", i.MediaType, i.Data))
		}
		switch {
		case stopped != nil:
			event, r.Status, r.Error = Failed, esrp.Failed, asESRPError(stopped)
		case err != nil || res.Failed:
			event, r.Status, r.Error = Failed, esrp.Failed, &esrp.Error{Code: esrp.Unknown, Message: "the tool failed"}
		}
		if err != nil {
			r.Outputs = append(r.Outputs, b.text("error", "text/plain", err.Error()))
		}
		for n, c := range files {
			b.change(&r, n, c, o.id)
		}
		return event, r.Value()
	})
}

// change adds the contents of a file before and after the call to a response: as artifacts, and as
// outputs with names. The path is a body, so that it is removed when the chat is erased.
func (b *bodies) change(r *esrp.Response, n int, c fileChange, id esrp.UUID) {
	metadata := esrp.ObjectValue(esrp.Member{Key: "file", Value: esrp.IntValue(int64(n))})
	add := func(body esrp.Body) {
		body.Metadata = metadata
		r.Outputs = append(r.Outputs, body)
	}
	add(b.text("file.path", "text/plain", c.path))
	if c.movedTo != "" {
		add(b.text("file.moved_to", "text/plain", c.movedTo))
	}
	for _, v := range []struct {
		name string
		data []byte
		has  bool
	}{{"file.before", c.before, c.existedBefore}, {"file.after", c.after, c.movedTo == ""}} {
		if !v.has {
			continue
		}
		body, data := b.file(v.name, v.data)
		add(body)
		if hash, ok := hashOf(body.Data); ok {
			r.Artifacts = append(r.Artifacts, esrp.Artifact{
				ID: esrp.DerivedUUID(id.String() + "/" + v.name + "/" + strconv.Itoa(n)), Kind: esrp.File,
				URI: body.Data, SHA256: hash, SizeBytes: uint64(len(data)), Retention: esrp.Run,
			})
		}
	}
}

// fileChange is a change of a file.
type fileChange struct {
	path, movedTo string
	before, after []byte
	existedBefore bool
}

// fileChangeLog is a tools.FileLog that records file changes and forwards them to the engine's.
type fileChangeLog struct {
	log tools.FileLog

	mu       sync.Mutex // guards the fields below
	recorded []fileChange
}

var _ tools.FileLog = (*fileChangeLog)(nil)

// Writing implements tools.FileLog.
func (c *fileChangeLog) Writing(ctx context.Context, path string, content []byte) error {
	n := fileChange{path: path}
	n.before, n.existedBefore = readRegular(path)
	if len(content) <= maxFile {
		n.after = append([]byte(nil), content...)
	}
	c.mu.Lock()
	c.recorded = append(c.recorded, n)
	c.mu.Unlock()
	return c.log.Writing(ctx, path, content)
}

// Moving implements tools.FileLog.
func (c *fileChangeLog) Moving(ctx context.Context, from, to string) error {
	c.mu.Lock()
	c.recorded = append(c.recorded, fileChange{path: from, movedTo: to})
	c.mu.Unlock()
	return c.log.Moving(ctx, from, to)
}

func (c *fileChangeLog) list() []fileChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recorded
}

// readRegular returns the content of a regular file. It returns false if the file does not exist, is not
// a regular file, or is larger than maxFile.
func readRegular(path string) ([]byte, bool) {
	info, err := os.Lstat(path) // the target of a symlink is reported with its own path
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	data, err := safeio.Read(path, maxFile)
	return data, err == nil
}
