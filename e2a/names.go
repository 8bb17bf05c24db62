package e2a

// ResponseKinds lists all kinds of responses (e2a.md 2).
func ResponseKinds() []ResponseKind {
	return []ResponseKind{
		KindComplete, KindChunk, KindError, KindACPUpdate, KindACPPromptResult, KindACPError, KindACPOutputRequest,
		KindA2ATask, KindA2AMessage, KindA2AStreamEvent, KindCron, KindPlanApprovalRequired, KindExt,
	}
}

// internalMetadata reports whether a metadata key is internal to the first implementation. Such
// keys are not copied to channel_context.
func internalMetadata(key string) bool {
	switch key {
	case "_e2a_wire_legacy_agent_response", "_e2a_wire_legacy_agent_chunk", "_jiuwenswarm_server_push", "_jiuwenswarm_cancel_source":
		return true
	}
	return false
}
