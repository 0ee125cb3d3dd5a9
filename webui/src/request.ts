// What the page asks the server for: settings and talk as a request. What the server cannot do is not asked for.
import type { ChatRequest, Props } from "./api";
import { to_api, type Message } from "./conversation";
import { number_of, tools_of, type Settings } from "./settings";

/** Undefined where the server drafts nothing anyway, or has not said yet. */
function speculative_of(settings: Settings, props: Props | null): ChatRequest["speculative"] {
  if (props === null || !props.speculative.enabled) {
    return undefined;
  }
  return settings.drafting
    ? { enabled: true, max_length: Math.min(settings.draft_max, props.speculative.max_length) }
    : { enabled: false };
}

/** Throws a sentence for a setting that makes no sense. */
export function request_of(settings: Settings, messages: Message[], props: Props | null): ChatRequest {
  const temperature = number_of("Temperature", settings.temperature);
  const max_tokens = number_of("Longest reply", settings.max_tokens);
  const budget = number_of("Thinking budget", settings.thinking_budget);
  const tools = tools_of(settings.tools);
  const speculative = speculative_of(settings, props);
  return {
    messages: to_api(settings.system, messages),
    ...(temperature !== undefined && { temperature }),
    ...(max_tokens !== undefined && { max_tokens }),
    ...(tools !== undefined && { tools }),
    chat_template_kwargs: {
      enable_thinking: settings.thinking,
      ...(budget !== undefined && { thinking_token_budget: budget }),
    },
    ...(speculative !== undefined && { speculative }),
  };
}
