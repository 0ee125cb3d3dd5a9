// An independent client, npm `openai`, against a running server with the shipped pair:
//   node serve_conformance.mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import OpenAI from "openai";
import { ROBOT, TOOLS, base, get, headers, idle, key, post, refused, run } from "./serve_client.mjs";

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, timeout: 60_000 });
const model = (await client.models.list()).data[0].id;

const QUIET = { chat_template_kwargs: { enable_thinking: false } };

const ask = (text, more = {}) => ({
  model,
  messages: [{ role: "user", content: text }],
  temperature: 0,
  max_tokens: 80,
  ...QUIET,
  ...more,
});
const chat = (text, more) => client.chat.completions.create(ask(text, more));

/** The whole reply from its chunks, put together as any client does. */
async function streamed(request) {
  const stream = await client.chat.completions.create({ ...request, stream: true });
  const reply = { content: "", reasoning: "", calls: [], finish: null, usage: null, chunks: 0, id: null, order: [] };
  for await (const chunk of stream) {
    reply.id ??= chunk.id;
    assert.equal(chunk.id, reply.id);
    assert.equal(chunk.object, "chat.completion.chunk");
    if (chunk.usage) {
      assert.deepEqual(chunk.choices, []);
      reply.usage = chunk.usage;
      reply.metrics = chunk.metrics;
    }
    for (const choice of chunk.choices) {
      reply.chunks += 1;
      reply.content += choice.delta.content ?? "";
      reply.reasoning += choice.delta.reasoning_content ?? "";
      if (choice.delta.content) reply.order.push("text");
      for (const call of choice.delta.tool_calls ?? []) {
        reply.order.push("call");
        reply.calls[call.index] ??= { id: call.id, name: call.function.name, arguments: "" };
        reply.calls[call.index].arguments += call.function.arguments ?? "";
      }
      reply.finish = choice.finish_reason ?? reply.finish;
    }
  }
  return reply;
}

const checks = {
  async "a reply, whole"() {
    const reply = await chat("What is the capital of Finland?");
    assert.equal(reply.object, "chat.completion");
    assert.equal(reply.choices.length, 1);
    const [choice] = reply.choices;
    assert.match(choice.message.content, /Helsinki/);
    assert.equal(choice.message.role, "assistant");
    assert.equal(choice.message.refusal, null);
    assert.equal(choice.finish_reason, "stop");
    assert.equal(choice.finish_detail, "stop_token");
    assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
    assert.ok(reply.timings.predicted_n === reply.usage.completion_tokens);
  },
  async "a stream is the whole reply"() {
    const request = ask("Tell me a story about a mouse.");
    const whole = await client.chat.completions.create(request);
    const stream = await streamed({ ...request, stream_options: { include_usage: true } });
    assert.equal(stream.content, whole.choices[0].message.content);
    assert.equal(stream.finish, whole.choices[0].finish_reason);
    assert.equal(stream.usage.completion_tokens, whole.usage.completion_tokens);
    assert.ok(stream.chunks > 4, `${stream.chunks} chunks`);
    assert.equal((await streamed(request)).usage, null);
  },
  async "drafting changes nothing, and is told"() {
    const request = ask("I want to hear a story with a mouse.", { temperature: 0.8, seed: 11, max_tokens: 120 });
    const fixed = { enabled: true, policy: "fixed" };
    const drafted = await client.chat.completions.create({ ...request, speculative: fixed });
    const short = await client.chat.completions.create({ ...request, speculative: { ...fixed, max_length: 2 } });
    const plain = await client.chat.completions.create({ ...request, speculative: { enabled: false } });
    for (const other of [short, plain]) {
      assert.equal(other.choices[0].message.content, drafted.choices[0].message.content);
    }
    const told = drafted.metrics.speculative_decoding;
    assert.ok(told.num_draft_tokens > 0 && told.mean_acceptance_length > 1);
    assert.equal(told.acceptance_histogram.reduce((a, b) => a + b), told.num_spec_steps);
    assert.ok(Math.abs(told.mean_acceptance_length - (1 + told.num_accepted_draft_tokens / told.num_spec_steps)) < 1e-9);
    const by_length = Object.entries(told.acceptance_histogram_by_draft_length);
    assert.equal(by_length.flatMap(([, steps]) => steps).reduce((a, b) => a + b), told.num_spec_steps);
    const drafts = by_length.map(([length, steps]) => length * steps.reduce((a, b) => a + b));
    assert.equal(drafts.reduce((a, b) => a + b), told.num_draft_tokens);
    assert.equal(drafted.timings.draft_n, told.num_draft_tokens);
    assert.equal(plain.metrics.speculative_decoding, null);
    assert.ok(short.metrics.speculative_decoding.num_spec_tokens <= 2);
  },
  async "seeds repeat and choices differ"() {
    const request = ask("Tell me a story about a dragon.", { temperature: 1, seed: 5, n: 3, max_tokens: 40 });
    const one = await client.chat.completions.create(request);
    const two = await client.chat.completions.create(request);
    const texts = one.choices.map((choice) => choice.message.content);
    assert.deepEqual(two.choices.map((choice) => choice.message.content), texts);
    assert.deepEqual(one.choices.map((choice) => choice.index), [0, 1, 2]);
    assert.ok(new Set(texts).size > 1);
    const scored = { ...request, logprobs: true, top_logprobs: 2 };
    const facts = (reply) => reply.choices.map(({ message, logprobs }) => [message.content, logprobs.content]);
    const plain = await client.chat.completions.create({ ...scored, speculative: { enabled: false } });
    const drafted = await client.chat.completions.create({ ...scored, speculative: { policy: "fixed" } });
    assert.deepEqual(plain.choices.map((choice) => choice.message.content), texts);
    assert.deepEqual(facts(drafted), facts(plain));
    assert.equal(drafted.metrics, null, "of several choices there is no one truth");
    assert.ok(drafted.usage.completion_tokens_details.accepted_prediction_tokens > 0);
    // A prompt counts once, whatever n.
    const single = await client.chat.completions.create({ ...request, n: 1 });
    assert.equal(single.choices[0].message.content, texts[0]);
    assert.equal(one.usage.prompt_tokens, single.usage.prompt_tokens);
    assert.equal(one.usage.total_tokens, one.usage.prompt_tokens + one.usage.completion_tokens);
  },
  async "stop strings and limits"() {
    const free = (await chat("Tell me a story about a fox.")).choices[0].message.content;
    const stop = free.slice(12, 17);
    const cut = await chat("Tell me a story about a fox.", { stop: [stop] });
    assert.equal(cut.choices[0].message.content, free.slice(0, free.indexOf(stop)));
    assert.equal(cut.choices[0].finish_detail, "stop_string");
    assert.equal((await streamed(ask("Tell me a story about a fox.", { stop }))).content, free.slice(0, free.indexOf(stop)));
    for (const limit of [{ max_tokens: 5 }, { max_completion_tokens: 5, max_tokens: 50 }]) {
      const short = await chat("Tell me a story about a fox.", limit);
      assert.equal(short.usage.completion_tokens, 5);
      assert.equal(short.choices[0].finish_reason, "length");
    }
  },
  async "a reply is as long as it must be"() {
    const free = await chat("What is the capital of Finland?");
    const least = free.usage.completion_tokens + 9;
    const stop = free.choices[0].message.content.slice(4, 8);
    const texts = new Set();
    for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
      const more = { min_tokens: least, stop, speculative };
      const long = await chat("What is the capital of Finland?", more);
      assert.ok(long.usage.completion_tokens >= least);
      assert.ok(long.choices[0].message.content.startsWith(free.choices[0].message.content.slice(0, 8)));
      texts.add(long.choices[0].message.content);
      assert.equal((await streamed(ask("What is the capital of Finland?", more))).content, long.choices[0].message.content);
    }
    assert.equal(texts.size, 1);
  },
  async "stop strings that begin within the least tokens do not count"() {
    const question = "Tell me a story about a fox.";
    const story = (await chat(question, { logprobs: true, max_tokens: 24 })).choices[0];
    const tokens = story.logprobs.content.map(({ token }) => token);
    let inside = 0;
    for (let border = 1; border < 12; ++border) {
      const before = tokens.slice(0, border).join("");
      const behind = tokens.slice(border).join("");
      for (const stop of [before.slice(-1) + behind.slice(0, 3), behind.slice(0, 4)]) {
        inside += behind.includes(stop) ? 0 : 1;
        const expected = before + behind.split(stop)[0];
        for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
          const { choices } = await chat(question, { stop, min_tokens: border, max_tokens: 24, speculative });
          assert.equal(choices[0].message.content, expected, JSON.stringify({ stop, border }));
        }
      }
    }
    assert.ok(inside > 3, "no stop string lay across the border alone");
  },
  async "the last message of the assistant goes on"() {
    const messages = [{ role: "user", content: "Tell me a story about a fox." }, { role: "assistant", content: "Once upon a" }];
    const more = { messages, continue_final_message: true, add_generation_prompt: false };
    const reply = await client.chat.completions.create({ ...ask(""), ...more });
    const { prompt } = await (await post("/apply-template", { ...QUIET, ...more })).json();
    assert.ok(prompt.endsWith("Once upon a"), prompt);
    const raw = await client.completions.create({ model, prompt, temperature: 0, max_tokens: 80 });
    assert.ok(reply.choices[0].message.content.length > 10);
    assert.equal(reply.choices[0].message.content, raw.choices[0].text);
  },
  async "log-probabilities, drafted or not"() {
    const request = ask("What is a river?", { logprobs: true, top_logprobs: 3, max_tokens: 24 });
    const drafted = await client.chat.completions.create({ ...request, speculative: { policy: "fixed" } });
    const plain = await client.chat.completions.create({ ...request, speculative: { enabled: false } });
    const scores = drafted.choices[0].logprobs.content;
    assert.deepEqual(scores, plain.choices[0].logprobs.content);
    assert.equal(scores.length, drafted.usage.completion_tokens);
    assert.ok(drafted.timings.draft_n > 0, "scores turned drafting off");
    assert.equal(plain.timings.draft_n, undefined);
    for (const score of scores) {
      assert.ok(score.logprob <= 0);
      assert.equal(score.top_logprobs.length, 3);
      assert.equal(score.top_logprobs[0].token, score.token, "greedy takes the likeliest");
      assert.equal(Buffer.from(score.bytes).toString(), score.token);
    }
    let joined = [];
    const stream = await client.chat.completions.create({ ...request, stream: true });
    for await (const chunk of stream) joined.push(...(chunk.choices[0]?.logprobs?.content ?? []));
    assert.deepEqual(joined, scores);
  },
  async "speech before the tool call"() {
    const request = { ...ask("Please look left."), tools: TOOLS, tool_choice: "auto" };
    request.messages = [ROBOT, ...request.messages];
    const whole = await client.chat.completions.create(request);
    const { message, finish_reason } = whole.choices[0];
    assert.equal(finish_reason, "tool_calls");
    assert.equal(message.tool_calls.length, 1);
    const [call] = message.tool_calls;
    assert.equal(call.type, "function");
    assert.equal(call.function.name, "look_at");
    assert.deepEqual(JSON.parse(call.function.arguments), { direction: "left" });
    const stream = await streamed(request);
    assert.equal(stream.calls.length, 1);
    assert.equal(stream.calls[0].name, "look_at");
    assert.equal(stream.calls[0].arguments, call.function.arguments);
    assert.equal(stream.content, message.content ?? "");
    assert.ok(stream.order.indexOf("text") < stream.order.indexOf("call"), "text comes first");
    assert.ok(!/<\|/.test(stream.content), stream.content);
    const after = await client.chat.completions.create({
      ...request,
      messages: [...request.messages, message, { role: "tool", tool_call_id: call.id, content: '{"ok":true}' }],
    });
    assert.ok(after.choices[0].message.content.length > 0);
    assert.ok(after.usage.prompt_tokens_details.cached_tokens > whole.usage.prompt_tokens / 2);
  },
  async "tool_choice none lets nothing be called"() {
    const request = { ...ask("Please look left."), tools: TOOLS, tool_choice: "none" };
    request.messages = [ROBOT, ...request.messages];
    const reply = await client.chat.completions.create(request);
    assert.equal(reply.choices[0].message.tool_calls, undefined);
    assert.notEqual(reply.choices[0].finish_reason, "tool_calls");
  },
  async "formats hold, drafted or not"() {
    const schema = {
      type: "object",
      properties: { name: { type: "string", maxLength: 20 }, count: { type: "integer" } },
      required: ["name", "count"],
      additionalProperties: false,
    };
    const formats = [
      [{ response_format: { type: "json_schema", json_schema: { name: "item", strict: true, schema } } }, (text) => {
        const value = JSON.parse(text);
        assert.equal(typeof value.name, "string");
        assert.ok(Number.isInteger(value.count));
      }],
      [{ choice: ["yes", "no", "perhaps"] }, (text) => assert.ok(["yes", "no", "perhaps"].includes(text), text)],
      [{ regex: "[0-9]{3}-[a-f]{2}" }, (text) => assert.match(text, /^[0-9]{3}-[a-f]{2}$/)],
      [{ grammar: 'root ::= "left" | "right"' }, (text) => assert.match(text, /^(left|right)$/)],
    ];
    for (const [format, check] of formats) {
      let drafts = 0;
      for (const thinking of [false, true]) {
        const request = ask("What do you sell?", { ...format, temperature: 0.7, seed: 3, max_tokens: 200 });
        request.chat_template_kwargs = { enable_thinking: thinking, thinking_token_budget: thinking ? 8 : undefined };
        const texts = [];
        for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
          const reply = await client.chat.completions.create({ ...request, speculative });
          assert.equal(reply.choices[0].finish_reason, "stop", JSON.stringify(format));
          check(reply.choices[0].message.content);
          if (speculative.policy) drafts += reply.timings.draft_n ?? 0;
          texts.push(reply.choices[0].message.content);
        }
        assert.equal(texts[0], texts[1]);
      }
      assert.ok(drafts > 0, `nothing was drafted under ${JSON.stringify(format)}`);
    }
    await refused(400, "regex", () => chat("Hello.", { regex: "(" }));
    await refused(400, "grammar", () => chat("Hello.", { grammar: "rout ::=" }));
    await refused(400, "response_format.type", () => chat("Hello.", { response_format: { type: "xml" } }));
  },
  async "beside tools a format is for what is said"() {
    const schema = { type: "object", properties: { answer: { type: "string", maxLength: 40 } }, required: ["answer"], additionalProperties: false };
    const format = { response_format: { type: "json_schema", json_schema: { name: "said", schema } }, tools: TOOLS, max_tokens: 120 };
    const said = [];
    for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
      for (const text of ["Please look left.", "What is the capital of Finland?", "Hello."]) {
        for (let temperature = 0; temperature < 3; ++temperature) {
          const request = { ...ask(text, { ...format, speculative, temperature, seed: 4 }) };
          request.messages = [ROBOT, ...request.messages];
          const { message, finish_reason } = (await client.chat.completions.create(request)).choices[0];
          said.push(message.content);
          if (finish_reason === "length") continue;
          if (message.content) assert.equal(typeof JSON.parse(message.content).answer, "string");
          else assert.ok(message.tool_calls.length > 0);
          for (const call of message.tool_calls ?? []) JSON.parse(call.function.arguments);
        }
      }
    }
    assert.deepEqual(said.slice(0, 9), said.slice(9), "drafting changed a text");
    assert.ok(said.some(Boolean));
    await refused(400, "tool_choice", () => chat("Hello.", { tools: TOOLS, regex: "a+" }));
  },
  async "demanded tools are called"() {
    const request = { ...ask("Hello."), tools: TOOLS };
    request.messages = [ROBOT, ...request.messages];
    const any = await client.chat.completions.create({ ...request, tool_choice: "required" });
    assert.equal(any.choices[0].finish_reason, "tool_calls");
    const named = { type: "function", function: { name: "look_at" } };
    const one = await client.chat.completions.create({ ...request, tool_choice: named, parallel_tool_calls: false });
    assert.equal(one.choices[0].message.tool_calls.length, 1);
    assert.equal(one.choices[0].message.tool_calls[0].function.name, "look_at");
    JSON.parse(one.choices[0].message.tool_calls[0].function.arguments);
    named.function.name = "fly";
    await refused(400, "tool_choice", () => client.chat.completions.create({ ...request, tool_choice: named }));
  },
  async "thoughts are apart from speech"() {
    const request = { ...ask("What is 12 plus 30?"), chat_template_kwargs: { enable_thinking: true } };
    const whole = await client.chat.completions.create(request);
    const { message } = whole.choices[0];
    assert.ok(message.reasoning_content.length > 0);
    assert.ok(message.content.length > 0);
    assert.ok(!/thought|<\|/.test(message.content));
    const thoughts = whole.usage.completion_tokens_details.reasoning_tokens;
    assert.ok(thoughts > 0 && thoughts < whole.usage.completion_tokens);
    const both = await client.chat.completions.create({ ...request, reasoning_key: "both" });
    assert.equal(both.choices[0].message.reasoning, message.reasoning_content);
    assert.equal(both.choices[0].message.reasoning_content, message.reasoning_content);
    const other = await client.chat.completions.create({ ...request, reasoning_key: "reasoning" });
    assert.equal(other.choices[0].message.reasoning, message.reasoning_content);
    assert.equal(other.choices[0].message.reasoning_content, undefined);
    const stream = await streamed(request);
    assert.equal(stream.reasoning, message.reasoning_content);
    assert.equal(stream.content, message.content);
    // Every token is a thought, speech, a mark, a label or the end, and is counted once.
    const { choices, usage } = await client.chat.completions.create({ ...request, logprobs: true });
    const counts = { mark: 0, label: 0, thought: 0, speech: 0 };
    let inside = "speech";
    for (const { token } of choices[0].logprobs.content) {
      if (/^<.*\|>$|^<\|.*>$/.test(token)) {
        counts.mark += 1;
        inside = token === "<|channel>" ? "label" : "speech";
      } else {
        counts[inside] += 1;
        if (inside === "label" && token.includes("\n")) inside = "thought";
      }
    }
    assert.ok(counts.thought > 3 && counts.speech > 0, JSON.stringify(counts));
    assert.equal(usage.completion_tokens_details.reasoning_tokens, counts.thought);
    assert.equal(usage.completion_tokens, Object.values(counts).reduce((a, b) => a + b));
  },
  async "a thinking budget holds, wherever it stands"() {
    const request = ask("What is 12 plus 30?");
    delete request.chat_template_kwargs;
    const free = await client.chat.completions.create(request);
    assert.ok(free.usage.completion_tokens_details.reasoning_tokens > 3);
    const spellings = [
      { chat_template_kwargs: { thinking_token_budget: 2 } },
      { thinking_token_budget: 2 },
      { thinking_budget_tokens: 2 },
      { reasoning_budget_tokens: 2 },
      { thinking: { type: "enabled", budget_tokens: 2 } },
    ];
    const texts = new Set();
    for (const spelling of spellings) {
      for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
        const reply = await client.chat.completions.create({ ...request, ...spelling, speculative });
        assert.ok(reply.usage.completion_tokens_details.reasoning_tokens <= 2, "more than the budget");
        texts.add(JSON.stringify(reply.choices[0].message));
      }
    }
    assert.equal(texts.size, 1);
    const none = await client.chat.completions.create({ ...request, reasoning_effort: "none" });
    assert.equal(none.choices[0].message.reasoning_content, undefined);
    await refused(400, "thinking_budget_tokens", () =>
      client.chat.completions.create({ ...request, thinking_token_budget: 2, thinking_budget_tokens: 3 }));
  },
  async "the second turn reuses the first"() {
    const messages = [ROBOT, { role: "user", content: "What is a river?" }];
    const one = await client.chat.completions.create({ ...ask(""), messages });
    messages.push(one.choices[0].message, { role: "user", content: "Do the little_dance move." });
    const two = await client.chat.completions.create({ ...ask(""), messages });
    assert.ok(two.usage.prompt_tokens_details.cached_tokens > 0.9 * one.usage.prompt_tokens);
  },
  async "plain completions"() {
    const request = { model, prompt: "Once upon a time there was", max_tokens: 12, temperature: 0 };
    const whole = await client.completions.create({ ...request, logprobs: 2 });
    assert.equal(whole.object, "text_completion");
    assert.ok(whole.choices[0].text.length > 0);
    assert.equal(whole.choices[0].logprobs.tokens.length, 12);
    let text = "";
    for await (const chunk of await client.completions.create({ ...request, stream: true })) {
      text += chunk.choices[0]?.text ?? "";
    }
    assert.equal(text, whole.choices[0].text);
    const two = await client.completions.create({ ...request, prompt: [request.prompt, "And then"] });
    assert.equal(two.choices.length, 2);
    assert.equal(two.choices[0].text, text);
  },
  async "errors name their field"() {
    const bad = [
      ["temperature", { temperature: -1 }],
      ["temperature", { temperature: "hot" }],
      ["top_p", { top_p: 0 }],
      ["n", { n: 1000000 }],
      ["max_tokens", { max_tokens: 0 }],
      ["stop", { stop: Array(100).fill("a") }],
      ["top_logprobs", { top_logprobs: 3 }],
      ["logit_bias", { logit_bias: { 99999999: 1 } }],
      ["messages", { messages: [] }],
      ["mirostat", { mirostat: 2 }],
      ["min_tokens", { min_tokens: 90 }],
      ["min_tokens", { min_tokens: 3, response_format: { type: "json_object" } }],
      ["reasoning_key", { reasoning_key: "thoughts" }],
      ["speculative.wrong", { speculative: { wrong: 1 } }],
      ["frobnicate", { frobnicate: 1, strict: true }],
      ["reasoning_effort", { reasoning_effort: "enormous" }],
    ];
    for (const [param, more] of bad) await refused(400, param, () => chat("Hello.", more));
    await chat("Hello.", { frobnicate: 1, user: "me", max_tokens: 2 });
    const long = await refused(400, "messages", () => chat("word ".repeat(20000)));
    assert.equal(long.code, "context_length_exceeded");
    assert.match(long.message, /\d+ tokens and the context \d+/);
    await refused(404, null, () => chat("Hello.", { model: "another" }));
    const stranger = new OpenAI({ baseURL: `${base}/v1`, apiKey: "wrong", maxRetries: 0 });
    await refused(401, null, () => stranger.models.list());
  },
  async "hanging up cancels"() {
    const cancelled = async () => {
      const text = await (await get("/metrics")).text();
      return Number(/^octet:request_success_total\{finished_reason="cancelled"\} (\S+)$/m.exec(text)[1]);
    };
    const requests = async () => (await (await get("/props")).json()).requests;
    const until = async (holds) => {
      for (let i = 0; i < 200 && !(await holds()); ++i) await new Promise((resolve) => setTimeout(resolve, 10));
      assert.ok(await holds(), `${holds}`);
    };
    const endless = ask("Tell me a story about a mouse.", { ignore_eos: true, max_tokens: 1500, temperature: 1, seed: 3 });
    const start = (more, signal) => client.chat.completions.create({ ...endless, ...more }, { signal });
    await idle();

    let before = await cancelled();
    const stream = await start({ stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) break;
    }
    stream.controller.abort();
    await idle();
    assert.equal(await cancelled(), before + 1, "a stream");

    before = await cancelled();
    const whole = new AbortController();
    const gone = assert.rejects(start({}, whole.signal));
    await until(async () => (await requests()).running === 1);
    whole.abort();
    await gone;
    await idle();
    assert.equal(await cancelled(), before + 1, "a whole reply");

    before = await cancelled();
    const { total_slots } = await (await get("/props")).json();
    const running = Array.from({ length: total_slots }, () => new AbortController());
    const ends = running.map((one) => assert.rejects(start({}, one.signal)));
    await until(async () => (await requests()).running === total_slots);
    const queued = new AbortController();
    const waits = assert.rejects(start({}, queued.signal));
    await until(async () => (await requests()).waiting === 1);
    queued.abort();
    await waits;
    await until(async () => (await requests()).waiting === 0);
    assert.equal(await cancelled(), before + 1, "one that waited");
    assert.equal((await requests()).running, total_slots, "and no other");
    running.forEach((one) => one.abort());
    await Promise.all(ends);
    await idle();
    assert.equal(await cancelled(), before + 1 + total_slots);
  },
  async "cancel and end thinking by id"() {
    const request = ask("Tell me a story about a mouse.", { ignore_eos: true, max_tokens: 700, request_id: "mine-1" });
    const stream = await client.chat.completions.create({ ...request, stream: true });
    let finish = null;
    let told = false;
    for await (const chunk of stream) {
      assert.equal(chunk.id, "mine-1");
      if (!told && chunk.choices[0]?.delta.content) {
        told = true;
        const reply = await post("/v1/requests/mine-1/cancel", "");
        assert.equal(reply.status, 200);
      }
      finish = chunk.choices[0]?.finish_detail ?? finish;
    }
    assert.equal(finish, "cancelled");
    assert.equal((await post("/v1/requests/mine-1/cancel", "")).status, 404);
  },
  async "a thought ends when it is told to, or in time, and speech follows"() {
    const [close] = (await (await post("/tokenize", { content: "<channel|>" })).json()).tokens;
    const request = ask("What is 12 plus 30?", { chat_template_kwargs: { enable_thinking: true }, logit_bias: { [close]: -60 }, max_tokens: 300, ignore_eos: true });
    const free = (await client.chat.completions.create({ ...request, logit_bias: undefined, ignore_eos: undefined })).choices[0].message;
    const endless = await client.chat.completions.create(request);
    for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
      const late = (await client.chat.completions.create({ ...request, logit_bias: undefined, ignore_eos: undefined, speculative, speech_deadline_ms: 1 })).choices[0];
      assert.ok(late.message.content.length > 0, JSON.stringify(late));
      assert.notEqual(late.finish_detail, "deadline");
      assert.ok(free.reasoning_content.startsWith(late.message.reasoning_content ?? ""));
      assert.ok((late.message.reasoning_content ?? "").length < free.reasoning_content.length);
      const stream = await client.chat.completions.create({ ...request, speculative, stream: true, request_id: "think-1" });
      let told = false;
      let content = "";
      let reasoning = "";
      let closed = false;
      for await (const chunk of stream) {
        const delta = chunk.choices[0]?.delta ?? {};
        closed ||= chunk.choices[0]?.thinking_closed_by_budget === true;
        reasoning += delta.reasoning_content ?? "";
        content += delta.content ?? "";
        if (!told && reasoning) {
          told = true;
          assert.equal((await post("/v1/requests/think-1/end_thinking", "")).status, 200);
        }
      }
      assert.ok(closed, "the thought was not closed by force");
      assert.ok(content.length > 0 && reasoning.length < endless.choices[0].message.reasoning_content.length);
    }
    assert.equal((await post("/v1/requests/think-1/end_thinking", "")).status, 404);
    // A budget and a ban of what closes the thought contradict each other; the limit is the stronger.
    const banned = await client.chat.completions.create({ ...request, logit_bias: { [close]: -100 }, thinking_token_budget: 3 });
    assert.equal(banned.usage.completion_tokens_details.reasoning_tokens, 3);
  },
  async "times are told"() {
    const reply = await chat("Tell me a story about a fox.", { ignore_eos: true, max_tokens: 120 });
    const { timings, usage } = reply;
    assert.equal(timings.cache_n + timings.prompt_n, usage.prompt_tokens);
    assert.ok(timings.first_token_ms > 0 && timings.first_token_ms <= timings.first_speech_ms);
    assert.ok(timings.first_sentence_ms >= timings.first_speech_ms);
    assert.ok(timings.predicted_ms > 0 && timings.predicted_per_second > 0);
    const fixed = await chat("What is a river?", { speculative: { policy: "fixed" } });
    assert.ok(fixed.metrics.speculative_decoding.break_even_acceptance_length > 1);
  },
  async "only allowed tools are called, and one at a time where one is asked for"() {
    const allowed = (mode, ...names) => ({
      type: "allowed_tools",
      allowed_tools: { mode, tools: names.map((name) => ({ type: "function", function: { name } })) },
    });
    const request = { ...ask("Nod, and look to the left and then up."), tools: TOOLS };
    request.messages = [ROBOT, ...request.messages];
    const singles = [];
    for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
      for (let seed = 0; seed < 4; ++seed) {
        const more = { ...request, speculative, seed, temperature: seed };
        const animated = await client.chat.completions.create({ ...more, tool_choice: allowed("required", "play_animation", "describe_view") });
        assert.ok(seed > 0 || animated.choices[0].message.tool_calls?.length > 0, JSON.stringify(animated.choices[0]));
        for (const call of animated.choices[0].message.tool_calls ?? []) assert.notEqual(call.function.name, "look_at");
        const free = await client.chat.completions.create({ ...more, tool_choice: allowed("auto", "describe_view") });
        for (const call of free.choices[0].message.tool_calls ?? []) assert.equal(call.function.name, "describe_view");
        const single = await client.chat.completions.create({ ...more, parallel_tool_calls: false, logprobs: true });
        assert.ok((single.choices[0].message.tool_calls ?? []).length <= 1);
        assert.equal(single.choices[0].logprobs.content.length, single.usage.completion_tokens);
        singles.push([seed, single.usage.completion_tokens, single.choices[0].logprobs.content]);
      }
    }
    assert.deepEqual(singles.slice(0, 4), singles.slice(4), "drafting changed what is counted");
  },
  async "deadlines end a reply"() {
    const reply = await chat("Tell me a story about a mouse.", { ignore_eos: true, max_tokens: 700, deadline_ms: 40 });
    assert.equal(reply.choices[0].finish_detail, "deadline");
    assert.ok(reply.usage.completion_tokens < 700);
  },
  async "about the server"() {
    assert.equal((await fetch(`${base}/health`)).status, 200);
    for (const path of ["/ready", "/metrics", "/props", "/v1/models"]) {
      assert.equal((await fetch(base + path)).status, 401, path);
      assert.equal((await get(path)).status, 200, path);
    }
    assert.equal((await get("/v1/nothing")).status, 404);
    const wrong = await get("/v1/chat/completions");
    assert.equal(wrong.status, 405);
    assert.equal(wrong.headers.get("allow"), "POST");
    const props = await (await get("/props")).json();
    assert.equal(props.speculative.enabled, true);
    assert.equal(props.thinking_by_default, true);
    const head = await fetch(`${base}/props`, { method: "HEAD", headers });
    assert.equal(head.status, 200);
    assert.equal(await head.text(), "");
    assert.ok(props.speculative.max_length === 7 && props.n_ctx > 0);
    const metrics = await (await get("/metrics")).text();
    assert.match(metrics, /octet:spec_decode_num_accepted_tokens_per_pos_total\{position="0"\} \d/);
    const listed = await (await get(`/v1/models/${model}`)).json();
    assert.equal(listed.max_model_len, props.n_ctx);
  },
  async "text routes"() {
    const text = "Hello \u{1F98E} <|turn>";
    const plain = await (await post("/tokenize", { content: text, parse_special: false, with_pieces: true })).json();
    assert.ok(plain.tokens.some((entry) => Array.isArray(entry.piece)) || plain.tokens.length > 0);
    const ids = plain.tokens.map((entry) => entry.id);
    assert.equal((await (await post("/detokenize", { tokens: ids })).json()).content, text);
    const special = await (await post("/tokenize", { content: text })).json();
    assert.ok(special.tokens.length < ids.length);
    const prompt = await (await post("/apply-template", { messages: ask("Hi.").messages })).json();
    assert.match(prompt.prompt, /<\|turn>user\nHi\.<turn\|>/);
    assert.equal(prompt.thinking, true);
  },
  async "text of a caller is never a control token"() {
    const honest = await (await post("/tokenize", { messages: ask("a<turn|>b").messages })).json();
    const turn = (await (await post("/tokenize", { content: "<turn|>" })).json()).tokens[0];
    const without = await (await post("/tokenize", { messages: ask("ab").messages })).json();
    const count = (tokens) => tokens.filter((token) => token === turn).length;
    assert.equal(count(honest.tokens), count(without.tokens));
  },
  async "pages of other sites are kept out"() {
    const from = (origin) =>
      fetch(`${base}/v1/models`, { headers: { authorization: `Bearer ${key}`, origin } });
    assert.equal((await from("https://evil.example")).status, 403);
    assert.equal((await from("http://localhost.evil.example")).status, 403);
    const local = await from("http://localhost:3000");
    assert.equal(local.status, 200);
    assert.equal(local.headers.get("access-control-allow-origin"), "http://localhost:3000");
    assert.equal(local.headers.get("access-control-allow-credentials"), null);
  },
  async "bodies that are none"() {
    for (const body of ["", "{", "[]", '{"messages":', "null", "\u0000", '"x"', "[".repeat(5000)]) {
      const reply = await post("/v1/chat/completions", body);
      assert.equal(reply.status, 400, body.slice(0, 20));
      assert.ok((await reply.json()).error.message);
    }
    assert.equal((await post("/v1/chat/completions", "x".repeat(5 << 20))).status, 413);
  },
};

await run(checks);
