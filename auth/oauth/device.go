package oauth

import (
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"
)

// Device is a login that the user finishes on another device.
type Device struct {
	URL     string // where to enter the code
	Code    string // what to enter
	Expires time.Time

	client   *Client
	provider Provider
	secret   string // names the login to the server
	interval time.Duration
}

// Bounds of the device flow. RFC 8628 gives the default and the step.
const (
	defaultInterval = 5 * time.Second
	slowerBy        = 5 * time.Second
	maxInterval     = time.Minute
	deviceTime      = 15 * time.Minute // if the server does not say
)

// Device begins a login by device code.
func (c *Client) Device(ctx context.Context, p Provider) (*Device, error) {
	for what, at := range map[string]string{"device": p.DeviceURL, "token": p.TokenURL} {
		if err := p.check(what, at); err != nil {
			return nil, err
		}
	}
	var opts []oauth2.AuthCodeOption
	for k, v := range p.Params {
		opts = append(opts, oauth2.SetAuthURLParam(k, v))
	}
	begun := c.Now()
	da, err := p.config("").DeviceAuth(c.context(ctx), opts...)
	if err != nil {
		return nil, clean(err, p.ClientSecret)
	}
	d := &Device{
		URL: da.VerificationURI, Code: da.UserCode, Expires: begun.Add(deviceTime),
		client: c, provider: p, secret: da.DeviceCode, interval: time.Duration(da.Interval) * time.Second,
	}
	if d.interval <= 0 {
		d.interval = defaultInterval
	}
	if !da.Expiry.IsZero() {
		d.Expires = begun.Add(time.Until(da.Expiry))
	}
	if d.URL == "" || d.Code == "" || d.secret == "" {
		return nil, errors.New("the login server's answer has no code to enter")
	}
	return d, nil
}

// Wait asks the server, as often as it permits, until the user has entered the code, or
// refused, or the code has expired. A server that cannot be reached meanwhile is asked
// again, less often.
func (d *Device) Wait(ctx context.Context) (Tokens, error) {
	cfg := d.provider.config("")
	for interval := d.interval; ; {
		if err := d.client.Sleep(ctx, interval); err != nil {
			return Tokens{}, err
		}
		if d.client.Now().After(d.Expires) {
			return Tokens{}, &Error{Code: "expired_token"}
		}
		t, err := cfg.Exchange(
			d.client.context(ctx), "",
			oauth2.SetAuthURLParam("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
			oauth2.SetAuthURLParam("device_code", d.secret),
		)
		if err == nil {
			return d.client.tokens(t), nil
		}
		err = clean(err, d.secret, d.provider.ClientSecret)
		var refused *Error
		var unreachable *UnreachableError
		switch {
		case ctx.Err() != nil:
			return Tokens{}, ctx.Err()
		case errors.As(err, &unreachable), errors.As(err, &refused) && refused.Code == "" && refused.Status >= 500:
			interval = min(2*interval, maxInterval)
		case refused == nil:
			return Tokens{}, err
		case refused.Code == "authorization_pending":
		case refused.Code == "slow_down":
			interval += slowerBy
		default:
			return Tokens{}, err
		}
	}
}
