package daemon

import (
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/changes"
	"github.com/seed-dec29ce4/eca/daemon/telemetry"
	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// newTelemetry returns the exporter of traces and metrics. It does nothing until a snapshot with
// the section otlp is published.
func (s *services) newTelemetry() *telemetry.Telemetry {
	const connect = 5 * time.Second
	return telemetry.New(telemetry.Options{
		Client: s.network.Client(netclient.Options{Connect: connect}), Version: s.opts.Version, Now: s.opts.Now, NewID: s.opts.NewID,
		Clean: s.Clean, Changed: func() { s.changes.Publish(changes.Notices) }, Log: s.opts.Log,
	})
}

// readTelemetry reads the section otlp of a snapshot's configuration and returns the mistakes in
// it.
func (r *reader) readTelemetry(s *Snapshot) []config.Problem {
	cfg := s.config
	var out []config.Problem
	properties := map[string]string{}
	for name, value := range cfg.OTLP {
		switch value.(type) {
		case string, bool, float64:
			properties[name] = fmt.Sprint(value)
		default:
			out = append(out, cfg.Problem([]string{"otlp", name}, "otlp.%s is not a text, number or boolean", name))
		}
	}
	parsed, errs := telemetry.Parse(properties, r.opts.Version)
	for _, err := range errs {
		out = append(out, cfg.Problem([]string{"otlp", err.Property}, "otlp.%v", err))
	}
	s.telemetry = parsed
	return out
}
