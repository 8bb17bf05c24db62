package main

// wrongValues are values of flags and of the configuration that cannot mean what the user wants.
func wrongValues() []wrongInput {
	exec, doctor := []string{"exec", "hi"}, []string{"doctor", "--offline"}
	mine := func(key string) string {
		return `{"chat": {"title": false}, "providers": {"mine": {"api": "openai-chat", "url": "%URL%", "key": "` + key + `", "fetchModels": false, "models": {"m": {}}}}}`
	}
	return []wrongInput{
		{name: "command of a key that never ends", bare: true, posix: true, args: exec, config: mine("${cmd:sleep 300}"), answer: refusing(401, "no key"), code: 1, want: []string{"providers.mine.key", "the command did not end within 10s", "run it in a terminal", "${env:NAME}"}},
		{name: "slow command of a key, at the doctor's", bare: true, posix: true, args: doctor, config: mine("${cmd:sleep 3; echo sk-slow-0123456789}"), code: 0, want: []string{"provider mine: ", "key from "}, not: []string{"still runs", "PROBLEM"}},
	}
}
