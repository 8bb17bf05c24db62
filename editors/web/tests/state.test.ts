import assert from "node:assert/strict";
import { test } from "node:test";
import type { Content } from "../src/protocol.ts";
import { apply, chatOf, newState, openFence, prepend, rootOf, waitingCalls, type Call, type State } from "../src/state.ts";

const say = (state: State, content: Content, role = "assistant", chatId = "c", parentChatId?: string): void =>
  apply(state, "chat/contentReceived", { chatId, parentChatId, role, content });
const kinds = (state: State): string[] => chatOf(state, "c").items.map((one) => ("text" in one ? `${one.kind}: ${one.text}` : one.kind));
const call = (type: string, more: Partial<Content> = {}): Content => ({ type, id: "1", name: "edit_file", server: "eca", ...more });

test("deltas become one answer; what interrupts it begins another", () => {
  const state = newState();
  say(state, { type: "text", text: "hi", contentId: "p" }, "user");
  say(state, { type: "progress", state: "running", text: "Working" });
  for (const text of ["a", "b"]) say(state, { type: "text", text });
  say(state, call("toolCallPrepare"));
  say(state, { type: "text", text: "c" });
  assert.deepEqual(kinds(state), ["user: hi", "assistant: ab", "call", "assistant: c"]);
  const chat = chatOf(state, "c");
  assert.equal(chat.running, true);
  say(state, { type: "progress", state: "finished", reason: "done" });
  assert.equal(chat.running, false);
  assert.ok(chat.items.every((one) => one.kind !== "assistant" || one.done));
});

test("a call goes through its stages and keeps its details", () => {
  const state = newState();
  say(state, call("toolCallPrepare", { argumentsText: '{"a"' }));
  say(state, call("toolCallRun", { manualApproval: true, summary: "Edit x", arguments: { a: 1 }, details: { type: "fileChange", path: "/x", diff: "+a" }, permission: { reason: "no rule" } }));
  const chat = chatOf(state, "c");
  const one = chat.items[0] as Call;
  assert.deepEqual([one.stage, one.permission, one.size], ["waiting", "no rule", 4]);
  assert.equal(waitingCalls(state, chat)[0]?.call, one);
  say(state, call("toolCallRunning"));
  assert.equal(waitingCalls(state, chat).length, 0);
  say(state, call("toolCalled", { error: true, outputs: [{ text: "no" }], totalTimeMs: 7 }));
  assert.deepEqual([one.stage, one.outputs, one.ms, one.summary, one.details?.diff], ["failed", ["no"], 7, "Edit x", "+a"]);
  say(state, call("toolCallRejected", { id: "2", reason: "not this" }));
  assert.deepEqual(chat.items.map((item) => (item as Call).stage), ["failed", "rejected"]);
});

test("a subagent's call waits in the chat above it", () => {
  const state = newState();
  say(state, { type: "text", text: "x" });
  say(state, call("toolCallRun", { manualApproval: true }), "assistant", "child", "c");
  say(state, call("toolCallRun", { manualApproval: true }), "assistant", "stranger");
  const chat = chatOf(state, "c");
  assert.deepEqual(waitingCalls(state, chat).map((one) => one.chat.id), ["child"]);
  assert.equal(rootOf(state, chatOf(state, "child")), chat);
});

test("chats that name each other as parents end somewhere", () => {
  const state = newState();
  say(state, { type: "text", text: "x" }, "assistant", "a", "b");
  say(state, { type: "text", text: "x" }, "assistant", "b", "a");
  assert.ok(rootOf(state, chatOf(state, "a")));
});

test("a failed turn marks its notice", () => {
  const state = newState();
  say(state, { type: "text", text: "bad key" }, "system");
  say(state, { type: "progress", state: "finished", reason: "failed" });
  const last = chatOf(state, "c").items.at(-1);
  assert.ok(last?.kind === "notice" && last.failed);
});

test("tasks are one list and no calls", () => {
  const state = newState();
  say(state, { type: "toolCallPrepare", id: "t", name: "task", server: "eca" });
  say(state, { type: "toolCalled", name: "task", server: "eca", details: { type: "task", tasks: [{ id: 1, subject: "Look", status: "pending" }] } });
  assert.deepEqual(kinds(state), []);
  assert.equal(chatOf(state, "c").tasks?.tasks?.[0]?.subject, "Look");
});

test("clearing forgets the messages, and a steer that was read", () => {
  const state = newState();
  const chat = chatOf(state, "c");
  chat.steer = "hurry";
  say(state, { type: "text", text: " hurry\n" }, "user");
  assert.equal(chat.steer, undefined);
  apply(state, "chat/cleared", { chatId: "c", messages: true });
  assert.deepEqual([chat.items, chat.calls.size, chat.before], [[], 0, null]);
});

test("earlier messages come before, with their calls", () => {
  const state = newState();
  say(state, { type: "text", text: "new" });
  const chat = chatOf(state, "c");
  const added = prepend(state, chat, [
    { chatId: "c", role: "user", content: { type: "text", text: "old" } },
    { chatId: "c", role: "assistant", content: call("toolCalled") },
    { chatId: "kid", parentChatId: "c", role: "assistant", content: { type: "text", text: "of the child" } },
  ], "cursor");
  assert.equal(added, 2);
  assert.deepEqual(kinds(state), ["user: old", "call", "assistant: new"]);
  assert.equal(chat.before, "cursor");
  assert.equal(new Set(chat.items.map((one) => one.key)).size, 3);
  assert.equal(chatOf(state, "kid").items.length, 1);
});

test("settings of the session and of a chat", () => {
  const state = newState();
  apply(state, "config/updated", { chat: { models: ["a", "b"], agents: ["code"], selectModel: "a", variants: ["low"], welcomeMessage: "hi" } });
  apply(state, "config/updated", { chatId: "c", chat: { selectModel: "b", variants: [], selectVariant: "low" } });
  apply(state, "config/updated", { chat: {} });
  assert.deepEqual([state.model, state.variants, state.welcome, state.models], ["a", ["low"], "hi", ["a", "b"]]);
  assert.deepEqual([chatOf(state, "c").model, chatOf(state, "c").variant], ["b", "low"]);
});

test("what is malformed changes nothing and breaks nothing", () => {
  const state = newState();
  for (const params of [null, undefined, 7, "x", {}, { chatId: "c" }, { chatId: "c", content: null }, { chatId: "c", content: 3 }, { chatId: "c", content: { type: "newThing" } }, { chatId: "c", content: { type: "toolCalled" } }]) {
    apply(state, "chat/contentReceived", params);
  }
  apply(state, "chat/unheardOf", {});
  apply(state, "chat/statusChanged", { chatId: "nobody", status: "running" });
  assert.equal(state.chats.get("c")?.items.length ?? 0, 0);
});

test("servers, providers, jobs, notices, questions", () => {
  const state = newState();
  apply(state, "tool/serverUpdated", { name: "files", status: "failed", error: "no program" });
  apply(state, "tool/serverUpdated", { name: "gone", status: "running" });
  apply(state, "tool/serverRemoved", { name: "gone" });
  apply(state, "providers/updated", { id: "p" });
  apply(state, "jobs/updated", { jobs: [{ id: "1" }] });
  apply(state, "$/showMessage", { type: "error", message: "twice" });
  apply(state, "$/showMessage", { type: "error", message: "twice" });
  state.questions.push({ id: 3, chatId: "c", params: {} });
  apply(state, "$/cancelRequest", { id: 3 });
  assert.deepEqual([[...state.servers.keys()], state.providers.size, state.jobs.length, state.notices.length, state.questions.length], [["files"], 1, 1, 1, 0]);
});

test("a long answer goes on in other items, and none of it is lost", () => {
  const text = "some words of it\n\n".repeat(20_000) + "x".repeat(100_000) + "\nend";
  for (const size of [text.length, 50_000, 777]) {
    const state = newState();
    for (let at = 0; at < text.length; at += size) say(state, { type: "text", text: text.slice(at, at + size) });
    const items = chatOf(state, "c").items;
    assert.equal(items.map((one) => ("text" in one ? one.text : "")).join(""), text, String(size));
    assert.ok(items.every((one) => "text" in one && one.text.length <= 32_000));
    assert.deepEqual(items.map((one) => one.kind === "assistant" && one.done), items.map((_, i) => i < items.length - 1));
  }
});

test("code that goes on in another item is still code", () => {
  const state = newState();
  say(state, { type: "text", text: "```go\n" + "x := 1\n".repeat(10_000) + "```\nafter" });
  const items = chatOf(state, "c").items.map((one) => ("text" in one ? one.text : ""));
  assert.ok(items.length > 2);
  for (const text of items.slice(1)) assert.ok(text.startsWith("```go\nx := 1\n"), text.slice(0, 20));
  for (const text of items.slice(0, -1)) assert.ok(text.endsWith("x := 1\n```\n"), text.slice(-20));
  assert.equal(openFence("~~~\n```\n"), "~~~");
  assert.equal(openFence("````\n```\n"), "````");
  assert.equal(openFence("```\nx\n```\n"), "");
});

test("messages of another shape change nothing, or are refused", () => {
  const state = newState();
  const wrong = { text: 5, id: "1", name: 7, server: {}, summary: {}, details: "x", arguments: 5, outputs: 6, permission: 4, argumentsText: 3 } as unknown as Partial<Content>;
  for (const type of ["text", "reasonText", "toolCallPrepare", "toolCallRun", "toolCalled", "usage", "image", "progress"]) say(state, { ...wrong, type });
  apply(state, "config/updated", { chat: { models: 5, agents: {}, variants: "x", selectModel: 6 } });
  assert.deepEqual([state.models, state.agents, state.variants, state.model], [[], [], [], undefined]);
  for (const [method, params] of [["tool/serverUpdated", {}], ["providers/updated", { id: 5 }], ["jobs/updated", { jobs: 8 }]] as const) assert.throws(() => apply(state, method, params));
});
