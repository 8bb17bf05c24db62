package oauth

import (
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"
)

// DeviceLogin is a login that the user completes on another device.
type DeviceLogin struct {
	URL     string // where to enter the code
	Code    string // the code to enter
	Expires time.Time

	client   *Client
	provider Provider
	secret   string // the device code, which identifies the login to the server
	interval time.Duration
}

// Times of the device flow. The default interval and the increment are those of RFC 8628.
const (
	defaultInterval     = 5 * time.Second
	intervalIncrement   = 5 * time.Second
	maxInterval         = time.Minute
	defaultCodeLifetime = 15 * time.Minute // if the server sends no expiry
)

// StartDeviceLogin starts a login by device code.
func (c *Client) StartDeviceLogin(ctx context.Context, p Provider) (*DeviceLogin, error) {
	for what, at := range map[string]string{"device": p.DeviceURL, "token": p.TokenURL} {
		if err := p.checkEndpoint(what, at); err != nil {
			return nil, err
		}
	}
	var opts []oauth2.AuthCodeOption
	for k, v := range p.Params {
		opts = append(opts, oauth2.SetAuthURLParam(k, v))
	}
	start := c.Now()
	da, err := p.config("").DeviceAuth(c.context(ctx), opts...)
	if err != nil {
		return nil, sanitizeError(err, p.ClientSecret)
	}
	d := &DeviceLogin{
		URL: da.VerificationURI, Code: da.UserCode, Expires: start.Add(defaultCodeLifetime),
		client: c, provider: p, secret: da.DeviceCode, interval: time.Duration(da.Interval) * time.Second,
	}
	if d.interval <= 0 {
		d.interval = defaultInterval
	}
	if !da.Expiry.IsZero() {
		// The oauth2 package computed Expiry with time.Now; Expires is a time of Client.Now.
		d.Expires = start.Add(time.Until(da.Expiry))
	}
	if d.URL == "" || d.Code == "" || d.secret == "" {
		return nil, errors.New("the login server's answer has no code to enter")
	}
	return d, nil
}

// Wait polls the server, at the interval that the server permits, until the user has entered the
// code or denied the login, or the code has expired. If the server cannot be reached, Wait polls
// less often.
func (d *DeviceLogin) Wait(ctx context.Context) (Tokens, error) {
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
		err = sanitizeError(err, d.secret, d.provider.ClientSecret)
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
			interval += intervalIncrement
		default:
			return Tokens{}, err
		}
	}
}
