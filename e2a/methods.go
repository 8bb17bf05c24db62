package e2a

// The methods of eca (e2a.md 10). The gateway also accepts MethodPrompt and MethodCancel of ACP.
const (
	MethodSend      = "chat.send"
	MethodInterrupt = "chat.interrupt"
	MethodApprove   = "chat.approve"
	MethodReject    = "chat.reject"
	MethodAnswer    = "chat.answer"

	MethodSessionCreate = "session.create"
	MethodSessionLoad   = "session.load"
	MethodSessionList   = "session.list"
	MethodSessionClose  = "session.close"
	MethodSessionDelete = "session.delete"

	MethodHistory   = "history.get"
	MethodConfigGet = "config.get"
	MethodConfigSet = "config.set"
	MethodCommands  = "command.list"
	MethodModelSync = "model.sync"
)

// MethodCancel is ACP's notification that stops a turn.
const MethodCancel = "session/cancel"
