// The wire types of the ECA protocol that the page reads, and those of its host.
// Everything may be absent: messages of another version must not break the page.

export interface Details {
  type?: string;
  path?: string;
  diff?: string;
  linesAdded?: number;
  linesRemoved?: number;
  effects?: { command?: string; effect?: string; target?: string; reason?: string }[];
  sandbox?: { level?: string; network?: string };
  jsons?: string[];
  subagentChatId?: string;
  agentName?: string;
  model?: string;
  step?: number;
  maxSteps?: number;
  tasks?: Task[];
  summary?: { done?: number; total?: number };
  activeSummary?: string;
}

export interface Task {
  id: number;
  subject: string;
  status: string;
  isBlocked?: boolean;
}

export interface Content {
  type: string;
  text?: string;
  contentId?: string;
  state?: string;
  reason?: string;
  id?: string;
  name?: string;
  server?: string;
  origin?: string;
  summary?: string;
  details?: Details;
  arguments?: Record<string, unknown>;
  argumentsText?: string;
  manualApproval?: boolean;
  permission?: { verdict?: string; rule?: string; reason?: string };
  outputs?: { type?: string; text?: string }[];
  error?: boolean | string | null;
  totalTimeMs?: number;
  title?: string;
  url?: string;
  mediaType?: string;
  base64?: string;
  status?: number;
  output?: string;
  sessionTokens?: number;
  sessionCost?: string;
  lastMessageCost?: string;
  limit?: { context?: number; output?: number };
}

export interface ContentReceived {
  chatId?: string;
  parentChatId?: string;
  role?: string;
  content?: Content;
}

export interface ChatConfig {
  models?: string[];
  agents?: string[];
  variants?: string[];
  selectModel?: string;
  selectAgent?: string;
  selectVariant?: string | null;
  selectTrust?: boolean;
  welcomeMessage?: string;
}

export interface ChatSummary {
  id: string;
  title?: string;
  status?: string;
  updatedAt?: number;
  messageCount?: number;
}

export interface WindowMeta {
  beforeCursor?: string | null;
}

export interface OpenResult {
  found?: boolean;
  title?: string;
  selection?: { model?: string | null; agent?: string; variant?: string | null; variants?: string[]; trust?: boolean };
  meta?: WindowMeta;
  error?: { message?: string };
}

export interface HistoryResult {
  contents?: ContentReceived[];
  meta?: WindowMeta;
  error?: { message?: string };
}

export interface ToolServer {
  type?: string;
  name: string;
  status?: string;
  disabled?: boolean;
  hasAuth?: boolean;
  error?: string;
  tools?: { name: string; disabled?: boolean }[];
}

export interface LoginMethod {
  key: string;
  label: string;
}

export interface Provider {
  id: string;
  label?: string;
  configured?: boolean;
  auth?: { status?: string; source?: string; envVar?: string };
  login?: { methods?: LoginMethod[] };
}

export interface LoginAction {
  action: string;
  methods?: LoginMethod[];
  fields?: { key: string; label: string; type: string }[];
  url?: string;
  code?: string;
  message?: string;
}

export interface Job {
  id: string;
  status?: string;
  label?: string;
  elapsed?: string;
  exitCode?: number | null;
  chatId?: string;
}

export interface JobOutput {
  lines?: { text: string; stream: string }[];
  status?: string | null;
  exitCode?: number | null;
}

export interface QuestionParams {
  chatId?: string;
  question?: string;
  options?: { label: string; description?: string }[];
  allowFreeform?: boolean;
}

export interface ContextItem {
  type: string;
  path?: string;
  uri?: string;
  name?: string;
  description?: string;
  server?: string;
  mediaType?: string;
  base64?: string;
  linesRange?: { start: number; end: number };
}

export interface Command {
  name: string;
  description?: string;
  arguments?: { name: string; required?: boolean }[] | null;
}

/** The host's answer to host/attach. */
export interface Attached {
  host: "browser" | "vscode";
  version?: string;
  folders?: string[];
  initialize?: { chatWelcomeMessage?: string };
}
