package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The server refuses each of these attacks by a client with the key of a role that may not do this.
func TestRoles(t *testing.T) {
	r := newRig(t, 1)
	c := r.dial(RoleController)
	d := r.submit(c, r.manifest(1, ":", ""), Submission{})
	key := attemptKey{"v", "c", 1}
	r.must(c.openLane(t.Context(), "any-host", Lane{Kind: KindHost, Limit: 1}, false))
	for _, role := range []string{RoleWorker, RoleViewer} {
		attacker := r.connectIntruder(role)
		for what, attack := range map[string]func(ctx context.Context) error{
			"hand out work": func(ctx context.Context) error {
				_, err := attacker.js.Publish(ctx, workSubject(d.Run, "any-host", key), nil)
				return err
			},
			"lead": func(ctx context.Context) error {
				_, err := attacker.js.Publish(ctx, planSubject("x"), nil)
				return err
			},
			"take the lead": func(ctx context.Context) error {
				return attacker.request(ctx, "$JS.API.CONSUMER.MSG.NEXT."+planStream+".plan-"+d.Run)
			},
			"write a document": func(ctx context.Context) error {
				kv, err := attacker.js.KeyValue(ctx, runsBucket)
				if err == nil {
					_, err = kv.Put(ctx, docKey(d.Run), []byte("{}"))
				}
				return err
			},
			"write a fixture": func(ctx context.Context) error {
				return attacker.request(ctx, "$O."+fixturesBucket+".M.eA==")
			},
			"remove results": func(ctx context.Context) error { return attacker.js.DeleteStream(ctx, resultStreams+d.Run) },
			"remove work":    func(ctx context.Context) error { return attacker.js.DeleteStream(ctx, workStream) },
			"purge work": func(ctx context.Context) error {
				return attacker.request(ctx, "$JS.API.STREAM.PURGE."+workStream)
			},
			"make a stream": func(ctx context.Context) error {
				_, err := attacker.js.CreateStream(ctx, jetstream.StreamConfig{Name: "mine", Subjects: []string{"mine"}})
				return err
			},
			"raise a limit": func(ctx context.Context) error {
				_, err := attacker.js.UpdateConsumer(ctx, workStream, jetstream.ConsumerConfig{Durable: "lane-any-host", FilterSubject: laneWork("any-host"), AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100})
				return err
			},
			"a consumer of its own": func(ctx context.Context) error {
				_, err := attacker.js.CreateConsumer(ctx, workStream, jetstream.ConsumerConfig{Durable: "mine", FilterSubject: laneWork("other"), AckPolicy: jetstream.AckExplicitPolicy})
				return err
			},
			"read answers to others": func(ctx context.Context) error {
				return attacker.listen(ctx, inboxPrefix(RoleController)+".>")
			},
		} {
			t.Run(role+" "+what, func(t *testing.T) { checkRefused(t, attacker, attack) })
		}
	}
	t.Run("a viewer publishes no result and takes no work", func(t *testing.T) {
		viewer := r.connectIntruder(RoleViewer)
		checkRefused(t, viewer, func(ctx context.Context) error {
			_, err := viewer.js.Publish(ctx, resultSubject(d.Run, key), nil)
			return err
		})
		checkRefused(t, viewer, func(ctx context.Context) error {
			return viewer.request(ctx, "$JS.API.CONSUMER.MSG.NEXT."+workStream+".lane-any-host")
		})
	})
	for what, attack := range controllerAttacks(d.Run, key) {
		t.Run("controller: "+what, func(t *testing.T) {
			attacker := r.connectIntruder(RoleController)
			checkRefused(t, attacker, func(ctx context.Context) error { return attack(ctx, attacker) })
		})
	}
	t.Run("a stranger does not get in", func(t *testing.T) {
		if _, err := Dial(t.Context(), Options{URL: r.url(), Seed: r.seeds["stranger"], Role: RoleController, Log: c.log}); !errors.Is(err, nats.ErrAuthorization) {
			t.Error(err)
		}
	})
	// Afterwards, the run is unchanged.
	r.work(r.spec("a"))
	r.expect(c, d, r.follow(t.Context(), c, d, FollowOptions{Lead: true}), 1)
}

// controllerAttacks are what even a controller may not do: destroy what all runs share, take part
// in a run, or use the server for something else.
func controllerAttacks(run string, key attemptKey) map[string]func(context.Context, intruder) error {
	requests := map[string]string{
		"purge results":              "$JS.API.STREAM.PURGE." + resultStreams + run,
		"remove a result":            "$JS.API.STREAM.MSG.DELETE." + resultStreams + run,
		"change a stream of results": "$JS.API.STREAM.UPDATE." + resultStreams + run,
		"purge the documents":        "$JS.API.STREAM.PURGE." + runsStream,
		"purge the blobs":            "$JS.API.STREAM.PURGE." + blobsStream,
		"add a result":               resultSubject(run, key),
		"write a blob":               "$O." + blobsBucket + ".M.eA==",
		"take work":                  "$JS.API.CONSUMER.MSG.NEXT." + workStream + ".lane-any-host",
		"acknowledge work":           "$JS.ACK." + workStream + ".lane-any-host.1.1.1.1.1",
		"pause a lane":               "$JS.API.CONSUMER.PAUSE." + workStream + ".lane-any-host",
		"list the streams":           "$JS.API.STREAM.NAMES",
		"copy a stream":              "$JS.API.STREAM.SNAPSHOT." + workStream,
		"replace a stream":           "$JS.API.STREAM.RESTORE." + workStream,
		"move a stream":              "$JS.API.STREAM.LEADER.STEPDOWN." + workStream,
		"use another subject":        "mine",
	}
	for _, stream := range []string{workStream, planStream, runsStream, fixturesStream, blobsStream} {
		requests["remove "+stream] = "$JS.API.STREAM.DELETE." + stream
	}
	out := map[string]func(context.Context, intruder) error{
		"read answers to workers": func(ctx context.Context, attacker intruder) error {
			return attacker.listen(ctx, inboxPrefix(RoleWorker)+".>")
		},
		"listen to results": func(ctx context.Context, attacker intruder) error { return attacker.listen(ctx, "ecp.res.>") },
	}
	for what, subject := range requests {
		out[what] = func(ctx context.Context, attacker intruder) error { return attacker.request(ctx, subject) }
	}
	return out
}

// intruder is a client with the key of a role that does not use this repository's code.
type intruder struct {
	nc *nats.Conn
	js jetstream.JetStream
}

func (r *rig) connectIntruder(role string) intruder {
	nc, js := r.raw(role)
	return intruder{nc, js}
}

// checkRefused checks that the server refuses an attack.
func checkRefused(t *testing.T, attacker intruder, attack func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	violations := make(chan error, 1)
	attacker.nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			select {
			case violations <- err:
			default:
			}
			cancel()
		}
	})
	err := attack(ctx)
	select {
	case <-violations:
	default:
		t.Errorf("the server did not refuse the attack: %v", err)
	}
}

// request fails unless it gets an answer.
func (c intruder) request(ctx context.Context, subject string) error {
	_, err := c.nc.RequestWithContext(ctx, subject, nil)
	return err
}

// listen waits for a message on a subject.
func (c intruder) listen(ctx context.Context, subject string) error {
	sub, err := c.nc.SubscribeSync(subject)
	if err == nil {
		_, err = sub.NextMsgWithContext(ctx)
	}
	return err
}
