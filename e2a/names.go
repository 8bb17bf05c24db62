package e2a

// ResponseKinds lists all kinds of responses (contract 2).
func ResponseKinds() []ResponseKind {
	return []ResponseKind{
		KindComplete, KindChunk, KindError, KindACPUpdate, KindACPPromptResult, KindACPError, KindACPOutputRequest,
		KindA2ATask, KindA2AMessage, KindA2AStreamEvent, KindCron, KindPlanApprovalRequired, KindExt,
	}
}

// A2ABranches are the branches of an a2a.stream_event, with their names on A2A's wire.
func A2ABranches() map[string]string {
	return map[string]string{"task": "task", "message": "message", "status_update": "statusUpdate", "artifact_update": "artifactUpdate"}
}

// CompatACPClientMethods are the client's methods as E2A's own documents list them. They
// are a superset of ACP's: session/set_model is none of its methods.
func CompatACPClientMethods() []string {
	return []string{
		"initialize", "authenticate", "session/new", "session/load", "session/list", "session/set_mode", "session/set_config_option",
		MethodPrompt, "session/set_model", "session/fork", "session/resume", "session/close", "logout",
	}
}

// CompatACPAgentMethods are the agent's methods as E2A's own documents list them.
func CompatACPAgentMethods() []string {
	return []string{
		"session/update", "session/request_permission", "fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output",
		"terminal/release", "terminal/wait_for_exit", "terminal/kill", "session/elicitation",
	}
}

// CompatACPNotifications are the notifications there.
func CompatACPNotifications() []string {
	return []string{"session/cancel", "session/update", "session/elicitation/complete"}
}

// CompatSessionUpdates are the kinds of session updates there. todo_update is none of
// ACP's.
func CompatSessionUpdates() []string {
	return []string{
		"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "todo_update", "plan",
		"available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update",
	}
}

// Metadata keys of the reference's own wire: they do not move into channel_context.
func internalMetadata(key string) bool {
	switch key {
	case "_e2a_wire_legacy_agent_response", "_e2a_wire_legacy_agent_chunk", "_jiuwenswarm_server_push", "_jiuwenswarm_cancel_source":
		return true
	}
	return false
}
