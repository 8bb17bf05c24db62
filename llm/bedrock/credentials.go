package bedrock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// AWS finds credentials and the region where AWS's own tools store them. In this order:
// AWS_BEARER_TOKEN_BEDROCK, an API key; AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN; the profile AWS_PROFILE, else "default", of the shared credentials and config
// files. They are read for every request, because other programs renew credentials while eca runs.
type AWS struct {
	Getenv func(name string) string
}

// Region returns the configured region, or "". A region in the endpoint's URL takes precedence.
func (a AWS) Region() string {
	if r := cmp.Or(a.Getenv("AWS_REGION"), a.Getenv("AWS_DEFAULT_REGION")); r != "" {
		return r
	}
	p, _ := a.profile()
	return p["region"]
}

// Check returns nil if there are credentials, and otherwise an error with the reason.
func (a AWS) Check() error {
	if a.Getenv("AWS_BEARER_TOKEN_BEDROCK") != "" {
		return nil
	}
	_, err := a.keys()
	return err
}

// authenticate returns the headers that authenticate a request to a URL.
func (a AWS) authenticate(ctx context.Context, at string, body []byte, now time.Time) (map[string]string, error) {
	if token := a.Getenv("AWS_BEARER_TOKEN_BEDROCK"); token != "" {
		return map[string]string{"Authorization": "Bearer " + token}, nil
	}
	keys, err := a.keys()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, nil)
	if err != nil {
		return nil, errors.New("the provider's url is invalid")
	}
	region := regionOf(req.URL)
	if region == "" {
		region = a.Region()
	}
	if region == "" {
		return nil, errors.New("unknown region: set AWS_REGION, or region in the profile, or the provider's url")
	}
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, hash(body), "bedrock", region, now); err != nil {
		return nil, fmt.Errorf("cannot sign the request: %w", err)
	}
	out := map[string]string{}
	for name := range req.Header {
		out[name] = req.Header.Get(name)
	}
	return out, nil
}

// hash returns the hash of the body for the signature.
func hash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// regionOf returns the region in the host name of a runtime endpoint, public or private: the label
// after bedrock-runtime.
func regionOf(u *url.URL) string {
	labels := strings.Split(u.Hostname(), ".")
	for i, label := range labels[:len(labels)-1] {
		if label == "bedrock-runtime" || label == "bedrock-runtime-fips" {
			return labels[i+1]
		}
	}
	return ""
}

// keys returns the keys for signatures.
func (a AWS) keys() (aws.Credentials, error) {
	c := aws.Credentials{
		AccessKeyID: a.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: a.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: a.Getenv("AWS_SESSION_TOKEN"),
	}
	if c.HasKeys() {
		return c, nil
	}
	if c.AccessKeyID != "" || c.SecretAccessKey != "" {
		return c, errors.New("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set")
	}
	p, err := a.profile()
	if err != nil {
		return c, err
	}
	c = aws.Credentials{AccessKeyID: p["aws_access_key_id"], SecretAccessKey: p["aws_secret_access_key"], SessionToken: p["aws_session_token"]}
	if !c.HasKeys() {
		return c, fmt.Errorf("the AWS profile %q %s", a.profileName(), p.unusableReason())
	}
	return c, nil
}

func (a AWS) profileName() string { return cmp.Or(a.Getenv("AWS_PROFILE"), "default") }

// profile reads the profile from both shared files; the credentials file takes precedence. It
// returns an error if there is no such profile.
func (a AWS) profile() (profile, error) {
	name := a.profileName()
	home := cmp.Or(a.Getenv("HOME"), a.Getenv("USERPROFILE"))
	out := profile{}
	found := false
	for _, file := range []struct{ variable, base, section string }{
		{"AWS_CONFIG_FILE", "config", "profile " + name},
		{"AWS_SHARED_CREDENTIALS_FILE", "credentials", name},
	} {
		path := a.Getenv(file.variable)
		if path == "" {
			if home == "" {
				continue
			}
			path = filepath.Join(home, ".aws", file.base)
		}
		text, err := readShared(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if name == "default" {
			found = out.read(text, name) || found // the config file may omit "profile" for it
		}
		found = out.read(text, file.section) || found
	}
	if !found {
		return nil, fmt.Errorf("there are no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile that exists (%q does not)", name)
	}
	return out, nil
}
