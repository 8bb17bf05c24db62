package config

import "strings"

// keyDoc says what a key is for, and what it takes beyond its type. It is the source of
// the JSON Schema and of what `eca config check` says.
type keyDoc struct {
	path string // by dots; * is a key that users choose, [] an element of a list
	text string
	rule rule
}

// rule narrows a type.
type rule struct {
	words    []string
	min, max *float64
}

func oneOf(words ...string) rule { return rule{words: words} }

func atLeast(n float64) rule { return rule{min: &n} }

func between(lo, hi float64) rule { return rule{min: &lo, max: &hi} }

// docs returns what is known of all keys. One that stands in several places is found by
// the end of its path.
func docs() map[string]keyDoc {
	out := map[string]keyDoc{}
	for _, list := range [][]keyDoc{generalDocs(), toolDocs(), providerDocs(), agentDocs(), extensionDocs()} {
		for _, d := range list {
			out[d.path] = d
		}
	}
	for _, c := range choices() {
		path := strings.Join(c.path, ".")
		d := out[path]
		d.rule.words = c.values
		out[path] = d
	}
	return out
}

// docOf looks a path up, then its ends.
func docOf(all map[string]keyDoc, path []string) (keyDoc, bool) {
	for i := range path {
		if d, ok := all[strings.Join(path[i:], ".")]; ok {
			return d, true
		}
	}
	return keyDoc{}, false
}

// pending are sections that eca accepts and does not act on yet.
func pending() []string {
	return []string{"remote", "otlp", "index", "chatRetentionDays"}
}

func generalDocs() []keyDoc {
	const seconds = " In seconds; 0 turns the limit off."
	return []keyDoc{
		{path: "$schema", text: "Where editors find this schema."},
		{path: "defaultModel", text: "The model of new chats, as provider/model. Without it eca chooses one of those that can be used."},
		{path: "defaultAgent", text: "The agent of new chats."},
		{path: "fetchModels", text: "Whether providers are asked for their models, and the public catalogue of models is fetched."},
		{path: "welcomeMessage", text: "What a new chat shows, as Markdown."},
		{path: "pureConfig", text: "In initializationOptions only: nothing but the defaults and these options counts."},
		{path: "env", text: "For test suites that compare traffic: test puts what happens in the background into a fixed order."},
		{path: "extraConfigs", text: "More configuration files, above all others, in this order. Relative paths start at the first workspace folder."},
		{path: "extraConfigs.[]", text: "A file's path."},
		{path: "netrcFile", text: "Where ${netrc:...} and keyRc look. Without it: ~/.netrc, then ~/_netrc."},
		{path: "auth", text: "How logins are kept."},
		{path: "auth.store", text: "Where logins are kept: auto takes the system's keychain if there is one.", rule: oneOf("auto", "keychain", "file")},
		{path: "chat", text: "How chats behave."},
		{path: "chat.title", text: "Whether a model gives chats their titles."},
		{path: "chat.defaultTrust", text: "Whether calls that would ask are allowed in new chats."},
		{path: "chat.defaultAgent", text: "The agent of new chats; goes before defaultAgent."},
		{path: "chat.autoSyncSystemPrompt", text: "Renew the system prompt of a chat that has begun whenever what it is made of changes."},
		{path: "chatRetentionDays", text: "How many days chats are kept after their last change; 0 keeps them.", rule: atLeast(0)},
		{path: "journal", text: "The record of model and tool calls that esrp journal reads."},
		{path: "journal.enabled", text: "Whether calls are recorded."},
		{path: "journal.maxSizeMb", text: "How many megabytes records and contents may take; the oldest go first. 0 is no limit.", rule: atLeast(0)},
		{path: "journal.retentionDays", text: "How many days records are kept after their segment was sealed; 0 keeps them.", rule: atLeast(0)},
		{path: "a2a", text: "What agents that call eca serve can have."},
		{path: "a2a.push", text: "Notifications of tasks to addresses that callers name. A host stands for itself and those below it."},
		{path: "a2a.push.enabled", text: "Whether there are such notifications."},
		{path: "a2a.push.allowHosts", text: "The only hosts that are notified. Without it: all of the public internet."},
		{path: "a2a.push.allowHosts.[]", text: "A host."},
		{path: "a2a.push.denyHosts", text: "Hosts that are not notified."},
		{path: "a2a.push.denyHosts.[]", text: "A host."},
		{path: "a2a.push.privateHosts", text: "Hosts and networks that are notified although they are not of the public internet; also by http."},
		{path: "a2a.push.privateHosts.[]", text: "A host, an address, or a network such as 10.0.0.0/8."},
		{path: "autoCompactPercentage", text: "How full the model's context may be, in percent, before the conversation is compacted; 0 is never.", rule: between(0, 100)},
		{path: "compact", text: "How conversations are compacted."},
		{path: "compact.model", text: "The model that writes summaries, as provider/model. Without it: the chat's own."},
		{path: "includeParentAgentsFiles", text: "Read the AGENTS.md files of the folders above the workspace folders too."},
		{path: "claudeFiles", text: "Read agents, commands, skills and hooks of Claude Code: .claude in the home and the workspace folders."},
		{path: "claudeMdFallback", text: "Read CLAUDE.md in folders without AGENTS.md."},
		{path: "completion", text: "Completions at the cursor."},
		{path: "completion.model", text: "The model of completions, as provider/model. If it can not be used: the default model."},
		{path: "rewrite", text: "Rewrites of a selection."},
		{path: "rewrite.model", text: "The model of rewrites, as provider/model. Without it: the default model."},
		{path: "rewrite.fullFileMaxLines", text: "Of larger files the model sees a part.", rule: atLeast(0)},
		{path: "lspTimeoutSeconds", text: "How long an editor may take to answer a question about the code." + seconds, rule: atLeast(0)},
		{path: "mcpTimeoutSeconds", text: "How long an MCP server may take to start and to list what it offers." + seconds, rule: atLeast(0)},
		{path: "mcpKeepAliveSeconds", text: "How often remote MCP servers are pinged. In seconds; 0 is never.", rule: atLeast(0)},
		{path: "connectTimeoutSeconds", text: "How long a connection to a provider may take." + seconds, rule: atLeast(0)},
		{path: "firstByteTimeoutSeconds", text: "How long a provider may take to begin its answer." + seconds, rule: atLeast(0)},
		{path: "streamIdleTimeoutSeconds", text: "How long an answer may pause." + seconds, rule: atLeast(0)},
		{path: "requestTimeoutSeconds", text: "How long a whole answer may take." + seconds, rule: atLeast(0)},
		{path: "network", text: "How servers are reached over TLS."},
		{path: "network.caCertFile", text: "A PEM file with certificates of authorities, beside those of the system."},
		{path: "network.clientCert", text: "A PEM file with the certificate that eca shows; needs clientKey."},
		{path: "network.clientKey", text: "A PEM file with that certificate's key."},
		{path: "network.clientKeyPassphrase", text: "The key's passphrase."},
		{path: "index", text: "What is known of the files of a workspace."},
		{path: "index.ignoreFiles", text: "Which files are left out."},
		{path: "index.ignoreFiles.[]", text: "A way to leave files out."},
		{path: "index.ignoreFiles.[].type", text: "gitignore: as .gitignore says.", rule: oneOf("gitignore")},
		{path: "index.repoMap", text: "The map of the repository."},
		{path: "index.repoMap.maxTotalEntries", text: "Its entries in all.", rule: atLeast(0)},
		{path: "index.repoMap.maxEntriesPerDir", text: "Its entries of one folder.", rule: atLeast(0)},
		{path: "otlp", text: "Properties of an OpenTelemetry exporter, by name."},
		{path: "otlp.*", text: "A property of the exporter."},
		{path: "remote", text: "The server for remote control."},
		{path: "remote.enabled", text: "Whether it runs."},
		{path: "remote.host", text: "The name under which clients reach it."},
		{path: "remote.bindHost", text: "The address it listens at."},
		{path: "remote.port", text: "The port it listens at. Without it: the first free one from 7777 to 7796.", rule: between(0, 65535)},
		{path: "remote.password", text: "What clients must know. Without it: a random one."},
		{path: "remote.tls", text: "Its certificate."},
		{path: "remote.tls.certFile", text: "A PEM file with the certificate."},
		{path: "remote.tls.keyFile", text: "A PEM file with the certificate's key."},
		{path: "remote.tls.certUrl", text: "Where the certificate is fetched."},
		{path: "remote.tls.keyUrl", text: "Where the key is fetched."},
	}
}
