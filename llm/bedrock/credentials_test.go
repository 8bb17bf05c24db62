package bedrock

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/seed-dec29ce4/eca/llm"
)

// environment is one with shared files.
func environment(t testing.TB, env map[string]string, config, credentials string) AWS {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config": config, "credentials": credentials} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(home, ".aws", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return AWS{Getenv: func(name string) string {
		if name == "HOME" {
			return home
		}
		return env[name]
	}}
}

func TestKeys(t *testing.T) {
	const credentials = `
# the usual
[default]
aws_access_key_id = AKDEFAULT   # not the other one
aws_secret_access_key=secret/with=signs#inside
aws_session_token = token
[work]
aws_access_key_id = AKWORK
aws_secret_access_key = w
`
	const config = `
[default]
region = eu-west-1
s3 =
    region = nested
[profile work]
Region = eu-central-1
aws_access_key_id = loses
[profile "with sso"]
sso_session = corp
region = us-east-1
[profile program]
credential_process = /bin/print-keys
[profile role]
role_arn = arn:aws:iam::1:role/x
source_profile = default
[profile browser]
login_session = x
[profile empty]
output = json
`
	for name, c := range map[string]struct {
		env               map[string]string
		want, wantFailure string
		region            string
	}{
		"variables":                  {env: map[string]string{"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T", "AWS_REGION": "r"}, want: "A S T", region: "r"},
		"variables before a profile": {env: map[string]string{"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_PROFILE": "work"}, want: "A S ", region: "eu-central-1"},
		"half of them":               {env: map[string]string{"AWS_ACCESS_KEY_ID": "A"}, wantFailure: "only one of AWS_ACCESS_KEY_ID", region: "eu-west-1"},
		"default profile":            {want: "AKDEFAULT secret/with=signs#inside token", region: "eu-west-1"},
		"profile":                    {env: map[string]string{"AWS_PROFILE": "work", "AWS_DEFAULT_REGION": "d"}, want: "AKWORK w ", region: "d"},
		"SSO":                        {env: map[string]string{"AWS_PROFILE": "with sso"}, wantFailure: `"with sso" logs in with SSO, which eca does not do; let the AWS command line print keys`, region: "us-east-1"},
		"program":                    {env: map[string]string{"AWS_PROFILE": "program"}, wantFailure: "a program, which eca does not run"},
		"role":                       {env: map[string]string{"AWS_PROFILE": "role"}, wantFailure: "assumes a role"},
		"browser":                    {env: map[string]string{"AWS_PROFILE": "browser"}, wantFailure: "logs in with a browser"},
		"empty":                      {env: map[string]string{"AWS_PROFILE": "empty"}, wantFailure: "has no aws_access_key_id"},
		"unknown profile":            {env: map[string]string{"AWS_PROFILE": "nowhere"}, wantFailure: `a profile that exists ("nowhere" does not)`},
		"no files":                   {env: map[string]string{"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}, wantFailure: "there are no AWS credentials"},
		"a file that is none":        {env: map[string]string{"AWS_CONFIG_FILE": os.DevNull}, wantFailure: "not a regular file"},
	} {
		a := environment(t, c.env, config, credentials)
		k, err := a.keys()
		if got := k.AccessKeyID + " " + k.SecretAccessKey + " " + k.SessionToken; c.want != "" && (err != nil || got != c.want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if c.wantFailure != "" && (err == nil || !strings.Contains(err.Error(), c.wantFailure)) {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.Check(); (err == nil) != (c.want != "") {
			t.Errorf("%s: %v", name, err)
		}
		if got := a.Region(); got != c.region {
			t.Errorf("%s: region %q", name, got)
		}
	}
	large := environment(t, nil, "", strings.Repeat("#", maxShared+1))
	if _, err := large.keys(); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large file: %v", err)
	}
}

// sendSigned sends a request to a server of the test. It returns the request's Authorization header,
// whether the signature fits the request that arrived, and the error of the call.
func sendSigned(t *testing.T, a AWS, headers map[string]string, model string) (auth string, valid bool, failure error) {
	t.Helper()
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth = r.Header.Get("Authorization")
		body, _ := io.ReadAll(r.Body)
		again, _ := http.NewRequest(r.Method, "http://"+r.Host+r.RequestURI, nil)
		keys, _ := a.keys()
		_ = v4.NewSigner().SignHTTP(r.Context(), keys, again, hash(body), "bedrock", a.Region(), now)
		valid = again.Header.Get("Authorization") == auth && again.Header.Get("X-Amz-Date") == r.Header.Get("X-Amz-Date") &&
			again.Header.Get("X-Amz-Security-Token") == r.Header.Get("X-Amz-Security-Token")
		http.Error(w, `{"message":"signed with `+r.Header.Get("X-Amz-Security-Token")+`"}`, http.StatusForbidden)
	}))
	defer srv.Close()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	at := llm.Endpoint{Provider: "p", URL: srv.URL, Client: client, Headers: headers, Now: func() time.Time { return now }}
	for _, err := range New(at, a).Stream(context.Background(), llm.Request{Model: model, Messages: []llm.Message{messageOf(llm.User, text("hi"))}}) {
		failure = err
	}
	return auth, valid, failure
}

func TestSignature(t *testing.T) {
	a := environment(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKX", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "planted-token", "AWS_REGION": "eu-west-1"}, "", "")
	auth, valid, err := sendSigned(t, a, nil, "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-7-v1:0")
	if !valid || !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKX/20260506/eu-west-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date;x-amz-security-token, ") {
		t.Errorf("valid: %v, %s", valid, auth)
	}
	if e := llm.AsError(err); e.Kind != llm.ErrAuth || strings.Contains(e.Message, "planted") || !strings.Contains(e.Message, "signed with") {
		t.Errorf("the error: %v", err)
	}
}

func TestBearer(t *testing.T) {
	both := map[string]string{"AWS_ACCESS_KEY_ID": "AKX", "AWS_SECRET_ACCESS_KEY": "S", "AWS_BEARER_TOKEN_BEDROCK": "of-the-environment"}
	if auth, _, _ := sendSigned(t, environment(t, both, "", ""), nil, "m"); auth != "Bearer of-the-environment" {
		t.Error(auth)
	}
	if auth, _, _ := sendSigned(t, environment(t, both, "", ""), map[string]string{"Authorization": "Bearer configured"}, "m"); auth != "Bearer configured" {
		t.Error(auth)
	}
	auth, _, err := sendSigned(t, environment(t, nil, "", ""), nil, "m")
	if e := llm.AsError(err); auth != "" || e.Kind != llm.ErrAuth || !strings.Contains(e.Message, "p cannot be reached: there are no AWS credentials") {
		t.Errorf("%q, %v", auth, err)
	}
	nowhere := environment(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKX", "AWS_SECRET_ACCESS_KEY": "S"}, "", "")
	if auth, _, err := sendSigned(t, nowhere, nil, "m"); auth != "" || !strings.Contains(llm.AsError(err).Message, "unknown region") {
		t.Errorf("%q, %v", auth, err)
	}
}

func TestRegionOfURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://bedrock-runtime.us-east-1.amazonaws.com":                  "us-east-1",
		"https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com":         "us-gov-west-1",
		"https://vpce-1.bedrock-runtime.eu-west-3.vpce.amazonaws.com:8443": "eu-west-3",
		"https://gateway.example/bedrock":                                  "",
		"http://bedrock-runtime":                                           "",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := regionOf(u); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}

func FuzzProfile(f *testing.F) {
	f.Add("[default]\na = b\n [x\n[]\n=\n", "default")
	f.Fuzz(func(t *testing.T, file, section string) {
		p := profile{}
		if ok := p.read(file, section); !ok && len(p) > 0 {
			t.Errorf("%q has no section %q, but %v", file, section, p)
		}
		_ = p.unusableReason()
	})
}
