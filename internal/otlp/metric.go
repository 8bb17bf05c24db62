package otlp

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Instrument is something that is measured. With Bounds, which ascend, it is a histogram of values;
// without, a sum that only grows.
type Instrument struct {
	Name, Unit string
	Bounds     []float64
}

// metric is the data of an instrument.
type metric struct {
	Instrument
	points []*point
}

// point is the sum or the histogram of the values with the same attributes.
type point struct {
	attributes []Attribute
	start      time.Time
	count      uint64
	sum        float64
	buckets    []uint64 // of a histogram: the values up to each bound, and those above the last
}

// maxPoints limits the points of an instrument: one for each set of attributes. Values with further sets
// of attributes are added to one overflow point, as in the SDKs of OpenTelemetry.
const maxPoints = 2000

// meter keeps measurements until they are exported. Its owner guards it.
type meter struct {
	metrics map[string]*metric
	points  map[string]*point // by the instrument's name and the attributes
}

func newMeter() *meter { return &meter{metrics: map[string]*metric{}, points: map[string]*point{}} }

// add adds a value to an instrument.
func (m *meter) add(i Instrument, value float64, list []Attribute, now time.Time) {
	known := m.metrics[i.Name]
	if known == nil {
		known = &metric{Instrument: i}
		m.metrics[i.Name] = known
	}
	list = sortedByKey(list)
	key := i.Name
	for _, a := range list {
		key += fmt.Sprintf("\x00%s\x01%v", a.Key, a.Value)
	}
	p := m.points[key]
	if p == nil && len(known.points) >= maxPoints {
		key, list = i.Name+"\x00overflow", []Attribute{{"otel.metric.overflow", true}}
		p = m.points[key]
	}
	if p == nil {
		p = &point{attributes: list, start: now}
		if len(i.Bounds) > 0 {
			p.buckets = make([]uint64, len(i.Bounds)+1)
		}
		m.points[key] = p
		known.points = append(known.points, p)
	}
	p.count++
	p.sum += value
	if p.buckets != nil {
		n, _ := slices.BinarySearch(i.Bounds, value) // a bound belongs to the bucket below it
		p.buckets[n]++
	}
}

// sortedMetrics returns the metrics by name.
func (m *meter) sortedMetrics() []metric {
	var out []metric
	for _, known := range m.metrics {
		out = append(out, *known)
	}
	slices.SortStableFunc(out, func(a, b metric) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// merge adds the values of another meter that began later.
func (m *meter) merge(later *meter) {
	for key, p := range later.points {
		name, _, _ := strings.Cut(key, "\x00")
		known := m.metrics[name]
		if known == nil {
			known = &metric{Instrument: later.metrics[name].Instrument}
			m.metrics[name] = known
		}
		old := m.points[key]
		if old == nil {
			m.points[key] = p
			known.points = append(known.points, p)
			continue
		}
		old.count += p.count
		old.sum += p.sum
		for i, n := range p.buckets {
			old.buckets[i] += n
		}
	}
}
