// Calls to approve and questions to answer. The dock is above the prompt and never takes
// the focus, so that text typed into the prompt cannot approve anything.
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { CallDetails, callTitle } from "./call.tsx";
import type { Client, Decision } from "./client.ts";
import { rootOf, waitingCalls, type Call, type Chat, type Question } from "./state.ts";
import { line, visible } from "./text.ts";
import { focusPrompt, takeFocus, useChanges } from "./use.ts";

export function Dock(): VNode | null {
  const client = useChanges();
  const { state, chat } = client;
  const calls = waitingCalls(state, chat);
  const questions = state.questions.filter((one) => rootOf(state, state.chats.get(one.chatId) ?? chat) === chat);
  if (questions[0]) return <Ask key={String(questions[0].id)} question={questions[0]} count={questions.length + calls.length} />;
  if (calls[0]) return <Approval key={calls[0].call.id} {...calls[0]} count={calls.length} />;
  return <Elsewhere client={client} />;
}

/** The notice that another chat waits for the user. */
function Elsewhere({ client }: { client: Client }): VNode | null {
  const { state, chat } = client;
  const other = [...state.chats.values()].find((one) => !one.parent && one !== chat && (waitingCalls(state, one).length > 0 || state.questions.some((q) => q.chatId === one.id)));
  useDecisions(client, () => other && client.show(other.id));
  if (!other) return null;
  return (
    <button type="button" class="elsewhere" onClick={() => client.show(other.id)}>
      “{line(other.title, 60) || "Another chat"}” waits for you
    </button>
  );
}

const decisions: Record<string, Decision> = { KeyA: "accept", KeyS: "remember", KeyR: "reject", KeyW: "words" };

function Approval({ chat, call, count }: { chat: Chat; call: Call; count: number }): VNode {
  const client = useChanges();
  const [words, setWords] = useState<string | undefined>();
  const decide = (decision: Decision): void => {
    if (decision === "words") return setWords("");
    if (decision === "accept") client.approve(chat, call);
    else if (decision === "remember") client.approve(chat, call, "session");
    else client.reject(chat, call);
    focusPrompt();
  };
  useDecisions(client, decide);
  useKeys((key) => {
    const decision = decisions[key];
    if (decision) decide(decision);
    return decision !== undefined;
  });
  const reject = (event: Event): void => {
    event.preventDefault();
    client.reject(chat, call, words?.trim());
    focusPrompt();
  };
  return (
    <section class="dock" aria-label="Approval">
      <h2 class="call">
        {chat.parent && "A subagent asks: "}
        {callTitle(call)}
        {count > 1 && <span class="dim"> · 1 of {count}</span>}
      </h2>
      <div class="scroll">
        <CallDetails call={call} />
      </div>
      {words === undefined ? (
        <div class="buttons">
          <button type="button" class="primary" title="Alt+A" onClick={() => decide("accept")}>
            Accept
          </button>
          <button type="button" title="Alt+S: also what is like it, until eca ends" onClick={() => decide("remember")}>
            Accept and remember
          </button>
          <button type="button" title="Alt+R" onClick={() => decide("reject")}>
            Reject
          </button>
          <button type="button" title="Alt+W" onClick={() => decide("words")}>
            Reject with words…
          </button>
        </div>
      ) : (
        <form class="buttons" onSubmit={reject} onKeyDown={(event) => event.key === "Escape" && setWords(undefined)}>
          <input aria-label="What it should do instead" placeholder="What it should do instead" value={words} onInput={(event) => setWords(event.currentTarget.value)} ref={takeFocus} />
          <button type="submit" class="primary">
            Reject
          </button>
          <button type="button" class="quiet" onClick={() => decided(() => setWords(undefined))}>
            Back
          </button>
        </form>
      )}
    </section>
  );
}

function Ask({ question, count }: { question: Question; count: number }): VNode {
  const client = useChanges();
  const [own, setOwn] = useState("");
  const { params } = question;
  const options = params.options ?? [];
  const answer = (words: string | null): void => decided(() => client.answer(question, words));
  useKeys((key) => {
    const option = options[Number(/^Digit([1-9])$/.exec(key)?.[1] ?? 0) - 1];
    if (option) answer(option.label);
    return option !== undefined;
  });
  return (
    <section class="dock" aria-label="Question">
      <h2>
        {visible(params.question ?? "")}
        {count > 1 && <span class="dim"> · 1 of {count}</span>}
      </h2>
      <div class="options">
        {options.map((option, i) => (
          <button type="button" key={i} title={i < 9 ? `Alt+${i + 1}` : undefined} onClick={() => answer(option.label)}>
            <strong>{visible(option.label)}</strong>
            {option.description && <span>{visible(option.description)}</span>}
          </button>
        ))}
      </div>
      <form
        class="buttons"
        onSubmit={(event) => {
          event.preventDefault();
          if (own.trim()) answer(own.trim());
        }}
      >
        {params.allowFreeform !== false && (
          <>
            <input aria-label="Your own answer" placeholder="Your own answer" value={own} onInput={(event) => setOwn(event.currentTarget.value)} />
            <button type="submit" class="primary" disabled={!own.trim()}>
              Answer
            </button>
          </>
        )}
        <button type="button" class="quiet" onClick={() => answer(null)}>
          No answer
        </button>
      </form>
    </section>
  );
}

/** Decides, and focuses the prompt, because the pressed button disappears. */
function decided(decide: () => void): void {
  decide();
  focusPrompt();
}

/** Calls back for decisions that come from the host. */
function useDecisions(client: Client, decide: (decision: Decision) => void): void {
  useLayoutEffect(() => {
    client.onDecision = decide;
    return () => {
      if (client.onDecision === decide) client.onDecision = () => undefined;
    };
  });
}

/** Calls back for keys with Alt; true means that the key was for the dock. */
function useKeys(pressed: (code: string) => boolean): void {
  const latest = useRef(pressed);
  latest.current = pressed;
  useLayoutEffect(() => {
    const listener = (event: KeyboardEvent): void => {
      if (event.altKey && !event.ctrlKey && !event.metaKey && !event.repeat && latest.current(event.code)) event.preventDefault();
    };
    window.addEventListener("keydown", listener);
    return () => window.removeEventListener("keydown", listener);
  }, []);
}
