package bedrock

import (
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// profile is a section of AWS's shared files: settings by their names, in lower case.
type profile map[string]string

// maxShared bounds a shared file.
const maxShared = 1 << 20

func readShared(path string) (string, error) {
	text, err := safeio.Read(path, maxShared)
	return string(text), err
}

// read adds the settings of a section; ok says that the text has it. Lines that are not
// settings are skipped, and so are indented ones: they belong to a setting of several
// values, of which we use none.
func (p profile) read(text, section string) (ok bool) {
	inside := false
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';' || indented:
		case line[0] == '[':
			inside = sectionName(line) == section
			ok = ok || inside
		case inside:
			if key, value, isSetting := strings.Cut(line, "="); isSetting {
				p[strings.ToLower(strings.TrimSpace(key))] = settingValue(value)
			}
		}
	}
	return ok
}

// sectionName is the name in [profile "my name"], with one space and without quotes.
func sectionName(line string) string {
	name, _, _ := strings.Cut(line[1:], "]")
	return strings.Join(strings.Fields(strings.ReplaceAll(name, `"`, "")), " ")
}

// settingValue is a value without the comment that may follow it.
func settingValue(s string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		s, _, _ = strings.Cut(s, mark)
	}
	return strings.TrimSpace(s)
}

// without says why a profile without keys cannot be used, and what can be done.
func (p profile) without() string {
	const export = "; let the AWS command line print keys (aws configure export-credentials --format env), or use an API key in AWS_BEARER_TOKEN_BEDROCK"
	for _, way := range []struct{ setting, says string }{
		{"sso_session", "logs in with SSO, which eca does not do"},
		{"sso_start_url", "logs in with SSO, which eca does not do"},
		{"login_session", "logs in with a browser, which eca does not do"},
		{"credential_process", "gets its keys from a program, which eca does not run"},
		{"role_arn", "takes on a role, which eca does not do"},
	} {
		if p[way.setting] != "" {
			return way.says + export
		}
	}
	return "has no aws_access_key_id and aws_secret_access_key"
}
