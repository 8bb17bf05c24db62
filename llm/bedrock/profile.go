package bedrock

import (
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// profile is a section of AWS's shared files: settings by name, in lower case.
type profile map[string]string

// maxShared limits the size of a shared file, in bytes.
const maxShared = 1 << 20

func readShared(path string) (string, error) {
	text, err := safeio.Read(path, maxShared)
	return string(text), err
}

// read adds the settings of a section; ok reports whether the text has the section. It skips lines
// that are not settings, and indented lines, which belong to settings with several values that eca
// does not use.
func (p profile) read(text, section string) (ok bool) {
	inSection := false
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';' || indented:
		case line[0] == '[':
			inSection = sectionName(line) == section
			ok = ok || inSection
		case inSection:
			if key, value, isSetting := strings.Cut(line, "="); isSetting {
				p[strings.ToLower(strings.TrimSpace(key))] = settingValue(value)
			}
		}
	}
	return ok
}

// sectionName returns the name in a line such as [profile "my name"], with single spaces and
// without quotes.
func sectionName(line string) string {
	name, _, _ := strings.Cut(line[1:], "]")
	return strings.Join(strings.Fields(strings.ReplaceAll(name, `"`, "")), " ")
}

// settingValue returns a value without a trailing comment.
func settingValue(s string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		s, _, _ = strings.Cut(s, mark)
	}
	return strings.TrimSpace(s)
}

// unusableReason returns why a profile without keys cannot be used, and what to do.
func (p profile) unusableReason() string {
	const export = "; let the AWS command line print keys (aws configure export-credentials --format env), or use an API key in AWS_BEARER_TOKEN_BEDROCK"
	for _, kind := range []struct{ setting, reason string }{
		{"sso_session", "logs in with SSO, which eca does not do"},
		{"sso_start_url", "logs in with SSO, which eca does not do"},
		{"login_session", "logs in with a browser, which eca does not do"},
		{"credential_process", "gets its keys from a program, which eca does not run"},
		{"role_arn", "assumes a role, which eca does not do"},
	} {
		if p[kind.setting] != "" {
			return kind.reason + export
		}
	}
	return "has no aws_access_key_id and aws_secret_access_key"
}
