import { expect, test } from "vitest";

import type { Chunk, Delta } from "../src/api";
import { apply, new_reply, speech_text, to_api, type Assistant } from "../src/conversation";
import { acceptance_length, add_step, kShownSteps, no_steps } from "../src/step_history";

function chunk(delta: Delta, finish: string | null = null): Chunk {
  return { id: "r", choices: [{ delta, finish_reason: finish }] };
}

function reply(...chunks: Chunk[]): Assistant {
  return chunks.reduce(apply, new_reply());
}

test("pieces keep their origin and neighbours of one origin join", () => {
  const found = reply(
    chunk({ content: "The cat", pieces: [["The", false], [" cat", true]] }),
    chunk({ content: " sat", pieces: [[" sat", true]] }),
    chunk({ content: "." }),
    chunk({}, "stop"),
  );
  expect(found.speech).toEqual([["The", false], [" cat sat", true], [".", false]]);
  expect(speech_text(found)).toBe("The cat sat.");
  expect(found.finish).toBe("stop");
});

test("thinking and tool calls are put together from their parts", () => {
  const found = reply(
    chunk({ reasoning_content: "I look " }),
    chunk({ reasoning_content: "it up." }),
    chunk({ tool_calls: [{ index: 0, id: "c1", function: { name: "find", arguments: "" } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] }),
    chunk({ tool_calls: [{ index: 1, id: "c2", function: { name: "go", arguments: "{}" } }] }, "tool_calls"),
  );
  expect(found.thinking).toBe("I look it up.");
  expect(found.calls.map((call) => [call.id, call.name, call.arguments])).toEqual([
    ["c1", "find", '{"a":1}'],
    ["c2", "go", "{}"],
  ]);
});

test("the model is sent calls with their results and no old thinking", () => {
  const called = reply(chunk({ reasoning_content: "hm", content: "Wait." }), chunk({ tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "{}" } }] }));
  called.calls[0]!.result = "7";
  expect(to_api("Be kind.", [{ role: "user", text: "Hi" }, called, new_reply()])).toEqual([
    { role: "system", content: "Be kind." },
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Wait.", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "c", content: "7" },
  ]);
});

test("acceptance counts drafted steps alone, by position", () => {
  const step = (drafted: number, accepted: number) => ({ drafted, accepted, published: accepted + 1, draft_ms: 1, verify_ms: 2 });
  let history = no_steps();
  expect(acceptance_length(history)).toBeNull();
  for (const [drafted, accepted] of [[7, 3], [0, 0], [7, 0], [2, 2]] as const) {
    history = add_step(history, step(drafted, accepted));
  }
  expect(acceptance_length(history)).toBeCloseTo(1 + 5 / 3);
  expect(history.reached.slice(0, 4)).toEqual([2, 2, 1, 0]);
  for (let i = 0; i < 2 * kShownSteps; ++i) {
    history = add_step(history, step(7, 7));
  }
  expect(history.steps.length).toBe(kShownSteps);
  expect(history.count).toBe(4 + 2 * kShownSteps);
});
