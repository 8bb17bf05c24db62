package daemon

import (
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/auth"
)

// Bedrock can be used with a key. AWS credentials suffice only if the configuration lists models, because
// users have such credentials for other purposes, too.
func TestBedrockCredentials(t *testing.T) {
	const models = `{"providers": {"bedrock": {"models": {"us.anthropic.claude-sonnet-4-5-20250929-v1:0": {}, "meta.llama3-3-70b-instruct-v1:0": {}}}}}`
	aws := map[string]string{"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "S", "AWS_REGION": "eu-west-1"}
	for name, c := range map[string]struct {
		config     string
		env        map[string]string
		ids, cause string
		state      auth.State
	}{
		"AWS's credentials": {models, aws, "bedrock/meta.llama3-3-70b-instruct-v1:0 bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "", auth.Authenticated},
		"no models":         {`{}`, aws, "demo/offline", "models in the configuration", auth.Unauthenticated},
		"no region":         {models, map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "b"}, "", "AWS_REGION", auth.Authenticated},
		"no credentials":    {models, map[string]string{"AWS_REGION": "eu-west-1"}, "", "there are no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK", auth.Unauthenticated},
		"a key and a URL": {
			models,
			map[string]string{"BEDROCK_API_KEY": "k", "BEDROCK_API_URL": "https://bedrock-runtime.us-east-1.amazonaws.com"},
			"bedrock/meta.llama3-3-70b-instruct-v1:0 bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "", auth.Authenticated,
		},
	} {
		d := newDaemon(t, c.config, c.env)
		if got := strings.Join(d.ModelChoice().IDs, " "); got != c.ids {
			t.Errorf("%s: %s", name, got)
		}
		m, err := d.Resolve("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "")
		if c.cause == "" && (err != nil || !m.Reasoning) || c.cause != "" && (err == nil || !strings.Contains(err.Error(), c.cause)) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		for _, p := range d.Providers() {
			if p.ID == "bedrock" && (p.Auth.State != c.state || p.Label != "AWS Bedrock") {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
}
