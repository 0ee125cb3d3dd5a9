// The server's API as far as the page uses it (docs/http_api.md), and errors as sentences.
import { event_data } from "./event_stream";

export interface ToolCallDelta {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

/** A piece of text and whether it came from an accepted draft. */
export type Piece = [text: string, drafted: boolean];

export interface Delta {
  content?: string | null;
  reasoning_content?: string;
  pieces?: Piece[];
  tool_calls?: ToolCallDelta[];
}

/** What one step of the engine did for this reply. */
export interface Step {
  drafted: number;
  accepted: number;
  published: number;
  draft_ms: number;
  verify_ms: number;
}

export interface Timings {
  prompt_n: number;
  cache_n: number;
  predicted_n: number;
  predicted_per_second: number;
  first_token_ms: number;
}

export interface Chunk {
  id: string;
  choices: { delta: Delta; finish_reason: string | null; finish_detail?: string }[];
  step?: Step;
  timings?: Timings | null;
  error?: { message: string };
}

export type ApiMessage =
  | { role: "system" | "user"; content: string }
  | { role: "assistant"; content: string | null; tool_calls?: ApiToolCall[] }
  | { role: "tool"; tool_call_id: string; content: string };

export interface ApiToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface ChatRequest {
  messages: ApiMessage[];
  temperature?: number;
  max_tokens?: number;
  tools?: unknown[];
  chat_template_kwargs: { enable_thinking: boolean; thinking_token_budget?: number };
  speculative?: { enabled: boolean; max_length?: number };
}

export interface Props {
  model: string;
  machine: string;
  n_ctx: number;
  default_generation_settings: { temperature: number };
  speculative: { enabled: boolean; reason: string | null; max_length: number };
}

async function failure(response: Response): Promise<Error> {
  try {
    const body = await response.json();
    return new Error(body.error.message);
  } catch {
    return new Error(`the server answered ${response.status} ${response.statusText}`);
  }
}

export class Api {
  constructor(private readonly key: string) {}

  private headers(): Record<string, string> {
    return this.key === "" ? {} : { Authorization: `Bearer ${this.key}` };
  }

  async props(): Promise<Props> {
    const response = await fetch("/props", { headers: this.headers() });
    if (!response.ok) {
      throw await failure(response);
    }
    return response.json();
  }

  /** Ends with the reply; aborting the signal stops the engine within a step. */
  async *chat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<Chunk> {
    const response = await fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json", ...this.headers() },
      body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true, include_steps: true } }),
      signal,
    });
    if (!response.ok || response.body === null) {
      throw await failure(response);
    }
    for await (const data of event_data(response.body)) {
      if (data === "[DONE]") {
        return;
      }
      const chunk: Chunk = JSON.parse(data);
      if (chunk.error !== undefined) {
        throw new Error(chunk.error.message);
      }
      yield chunk;
    }
    throw new Error("the connection ended before the reply did");
  }

  async end_thinking(id: string): Promise<void> {
    const response = await fetch(`/v1/requests/${encodeURIComponent(id)}/end_thinking`, {
      method: "POST",
      headers: this.headers(),
    });
    if (!response.ok) {
      throw await failure(response);
    }
  }
}
