import type { Assistant, ToolCall } from "./conversation";

export function UserMessage({ text }: { text: string }) {
  return (
    <article class="user" aria-label="You">
      {text}
    </article>
  );
}

const kEnds: Record<string, string> = {
  stopped: "stopped",
  length: "cut at the longest reply",
  context: "the context is full",
  deadline: "cut by its deadline",
  cancelled: "cancelled",
};

interface AssistantProps {
  reply: Assistant;
  awaits: boolean; // its tool calls want results
  on_result: (call: number, result: string) => void;
}

export function AssistantMessage({ reply, awaits, on_result }: AssistantProps) {
  const speaking = reply.finish === null;
  const note = reply.finish === null ? undefined : kEnds[reply.finish];
  return (
    <article class="assistant" aria-label="octet">
      {reply.thinking !== "" && (
        <details class="thinking" open={speaking && reply.speech.length === 0}>
          <summary>{speaking && reply.speech.length === 0 ? "Thinking …" : "Thought"}</summary>
          <div>{reply.thinking}</div>
        </details>
      )}
      <div class="speech">
        {reply.speech.map(([text, drafted], index) => (
          <span key={index} class={drafted ? "drafted" : "own"}>
            {text}
          </span>
        ))}
        {speaking && <span class="caret" aria-hidden="true" />}
      </div>
      {reply.calls.map((call, index) => (
        <ToolCallCard key={call.id} call={call} awaits={awaits} on_result={(result) => on_result(index, result)} />
      ))}
      {reply.error !== null && (
        <p class="problem" role="alert">
          {reply.error}
        </p>
      )}
      {note !== undefined && <p class="note">{note}</p>}
    </article>
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // still arriving
  }
}

interface ToolCallProps {
  call: ToolCall;
  awaits: boolean;
  on_result: (result: string) => void;
}

function ToolCallCard({ call, awaits, on_result }: ToolCallProps) {
  return (
    <section class="tool" aria-label={`Tool call ${call.name}`}>
      <h2>{call.name}</h2>
      <pre>{indented(call.arguments)}</pre>
      {awaits ? (
        <label>
          Result
          <textarea rows={2} value={call.result ?? ""} onInput={(event) => on_result(event.currentTarget.value)} />
        </label>
      ) : (
        call.result !== null && <pre class="result">{call.result}</pre>
      )}
    </section>
  );
}
