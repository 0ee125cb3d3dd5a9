// The page: the talk on the left, what it costs on the right.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Api, type ChatRequest, type Props } from "./api";
import { Composer } from "./composer";
import { apply, new_reply, type Assistant, type Message } from "./conversation";
import { LivePanel } from "./live_panel";
import { AssistantMessage, UserMessage } from "./messages";
import { SettingsPanel } from "./settings_panel";
import { request_of } from "./request";
import { load_settings, store_settings } from "./settings";
import { add_step, no_steps } from "./step_history";

export function App() {
  const [settings, set_settings] = useState(load_settings);
  const [messages, set_messages] = useState<Message[]>([]);
  const [history, set_history] = useState(no_steps);
  const [props, set_props] = useState<Props | null>(null);
  const [problem, set_problem] = useState<string | null>(null);
  const [running, set_running] = useState<{ id: string; abort: AbortController } | null>(null);
  const api = useMemo(() => new Api(settings.key), [settings.key]);
  const end = useRef<HTMLDivElement>(null);

  useEffect(() => {
    store_settings(settings);
    document.documentElement.dataset.theme = settings.theme;
  }, [settings]);

  useEffect(() => {
    api.props().then(
      (found) => {
        set_props(found);
        set_problem(null);
      },
      (error: Error) => set_problem(error.message),
    );
  }, [api]);

  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [messages]);

  async function answer(talk: Message[]) {
    let request: ChatRequest;
    try {
      request = request_of(settings, talk, props);
    } catch (error) {
      set_problem((error as Error).message);
      return;
    }
    set_problem(null);
    const abort = new AbortController();
    let reply: Assistant = new_reply();
    const show = () => set_messages([...talk, reply]);
    show();
    set_running({ id: "", abort });
    try {
      for await (const chunk of api.chat(request, abort.signal)) {
        const { step } = chunk;
        if (step !== undefined) {
          set_history((known) => add_step(known, step));
        }
        reply = apply(reply, chunk);
        set_running((now) => (now === null || now.id === chunk.id ? now : { ...now, id: chunk.id }));
        show();
      }
    } catch (error) {
      reply = abort.signal.aborted
        ? { ...reply, finish: "stopped" }
        : { ...reply, finish: "error", error: (error as Error).message };
      show();
    } finally {
      set_running(null);
    }
  }

  const last = messages.at(-1);
  const waits_for_tools = running === null && last?.role === "assistant" && last.calls.length > 0;
  const thinks = running !== null && last?.role === "assistant" && last.speech.length === 0 && last.thinking !== "";

  function set_result(message: number, call: number, result: string) {
    set_messages((talk) =>
      talk.map((entry, index) =>
        index === message && entry.role === "assistant"
          ? { ...entry, calls: entry.calls.map((known, at) => (at === call ? { ...known, result } : known)) }
          : entry,
      ),
    );
  }

  return (
    <div class="page">
      <header>
        <h1>octet</h1>
        <p class="subtitle">
          {props === null ? "connecting …" : `${props.model} · ${props.machine} · ${props.n_ctx} positions`}
          {props !== null && !props.speculative.enabled && ` · no drafting: ${props.speculative.reason}`}
        </p>
        <button
          type="button"
          disabled={running !== null || messages.length === 0}
          onClick={() => {
            set_messages([]);
            set_history(no_steps());
          }}
        >
          New talk
        </button>
      </header>
      <main>
        <section class="talk" aria-label="Conversation">
          <div class="messages" role="log" aria-live="polite" aria-busy={running !== null}>
            {messages.length === 0 && (
              <p class="empty">
                Say something. Tokens that were <span class="drafted">drafted and accepted</span> are marked; the others are the
                target's own. The text is the same either way.
              </p>
            )}
            {messages.map((message, index) =>
              message.role === "user" ? (
                <UserMessage key={index} text={message.text} />
              ) : (
                <AssistantMessage
                  key={index}
                  reply={message}
                  awaits={waits_for_tools && index === messages.length - 1}
                  on_result={(call, result) => set_result(index, call, result)}
                />
              ),
            )}
            <div ref={end} />
          </div>
          {problem !== null && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
          {waits_for_tools && (
            <button type="button" class="primary" onClick={() => answer(messages)}>
              Send the tools' results
            </button>
          )}
          <Composer
            running={running !== null}
            thinks={thinks}
            on_send={(text) => answer([...messages, { role: "user", text }])}
            on_stop={() => running?.abort.abort()}
            on_end_thinking={() => {
              if (running !== null && running.id !== "") {
                api.end_thinking(running.id).catch((error: Error) => set_problem(error.message));
              }
            }}
          />
        </section>
        <aside aria-label="Figures and settings">
          <LivePanel history={history} timings={last?.role === "assistant" ? last.timings : null} />
          <SettingsPanel settings={settings} props={props} on_change={set_settings} />
        </aside>
      </main>
    </div>
  );
}
