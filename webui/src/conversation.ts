// Messages as values: a chunk of the stream goes in, the next message comes out. No page, no network.
import type { ApiMessage, Chunk, Piece, Timings } from "./api";

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
  result: string | null; // what the user gave as the tool's answer
}

export interface Assistant {
  role: "assistant";
  thinking: string;
  speech: Piece[];
  calls: ToolCall[];
  finish: string | null; // null: still speaking
  error: string | null;
  timings: Timings | null;
}

export interface User {
  role: "user";
  text: string;
}

export type Message = User | Assistant;

export function new_reply(): Assistant {
  return { role: "assistant", thinking: "", speech: [], calls: [], finish: null, error: null, timings: null };
}

export function speech_text(reply: Assistant): string {
  return reply.speech.map(([text]) => text).join("");
}

/** Neighbours of the same origin are one piece, so that a long reply stays a short list. */
function add_piece(speech: Piece[], piece: Piece): Piece[] {
  const last = speech.at(-1);
  if (last !== undefined && last[1] === piece[1]) {
    return [...speech.slice(0, -1), [last[0] + piece[0], last[1]]];
  }
  return [...speech, piece];
}

export function apply(reply: Assistant, chunk: Chunk): Assistant {
  const next = { ...reply, timings: chunk.timings ?? reply.timings };
  const choice = chunk.choices[0];
  if (choice === undefined) {
    return next;
  }
  const { delta } = choice;
  next.thinking += delta.reasoning_content ?? "";
  if (delta.content) {
    for (const piece of delta.pieces ?? [[delta.content, false] as Piece]) {
      next.speech = add_piece(next.speech, piece);
    }
  }
  for (const call of delta.tool_calls ?? []) {
    const calls = [...next.calls];
    const known = calls[call.index] ?? { id: "", name: "", arguments: "", result: null };
    calls[call.index] = {
      ...known,
      id: call.id ?? known.id,
      name: known.name + (call.function?.name ?? ""),
      arguments: known.arguments + (call.function?.arguments ?? ""),
    };
    next.calls = calls;
  }
  if (choice.finish_reason !== null) {
    next.finish = choice.finish_detail ?? choice.finish_reason;
  }
  return next;
}

/** What the model is sent: thinking of earlier turns is left out, tool results follow their calls. */
export function to_api(system: string, messages: Message[]): ApiMessage[] {
  const out: ApiMessage[] = system.trim() === "" ? [] : [{ role: "system", content: system }];
  for (const message of messages) {
    if (message.role === "user") {
      out.push({ role: "user", content: message.text });
      continue;
    }
    const speech = speech_text(message);
    if (speech === "" && message.calls.length === 0) {
      continue; // nothing was said before it was stopped
    }
    out.push({
      role: "assistant",
      content: speech === "" ? null : speech,
      ...(message.calls.length > 0 && {
        tool_calls: message.calls.map((call) => ({
          id: call.id,
          type: "function" as const,
          function: { name: call.name, arguments: call.arguments },
        })),
      }),
    });
    for (const call of message.calls) {
      out.push({ role: "tool", tool_call_id: call.id, content: call.result ?? "no result was given" });
    }
  }
  return out;
}
