// npm `@anthropic-ai/sdk`, unchanged, on the messages API of a running server with the shipped pair:
//   node serve_messages.mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { ROBOT, TOOLS, base, get, key, post, run } from "./serve_client.mjs";

const client = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0, timeout: 60_000 });
const model = (await (await get("/v1/models")).json()).data[0].id;

const OWN_TOOLS = TOOLS.map(({ function: { name, description, parameters } }) => ({
  name,
  description,
  input_schema: parameters,
}));
const ask = (content, more = {}) => ({
  model,
  max_tokens: 80,
  temperature: 0,
  messages: [{ role: "user", content }],
  ...more,
});
const create = (content, more) => client.messages.create(ask(content, more));
const text = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");

/** The raw events of a stream, in the order that they must have, and the blocks that they add up to. */
async function streamed(request) {
  const events = [];
  for await (const event of await client.messages.create({ ...request, stream: true })) events.push(event);
  assert.equal(events[0].type, "message_start");
  assert.equal(events.at(-1).type, "message_stop");
  assert.equal(events.at(-2).type, "message_delta");
  const blocks = [];
  let open = null;
  for (const event of events.slice(1, -2)) {
    if (event.type === "content_block_start") {
      assert.equal(open, null);
      assert.equal(event.index, blocks.length);
      open = { ...event.content_block };
      blocks.push(open);
    } else if (event.type === "content_block_stop") {
      if (open.json !== undefined) open.input = JSON.parse(open.json);
      delete open.json;
      open = null;
    } else if (event.type === "content_block_delta") {
      assert.equal(event.index, blocks.length - 1);
      if (event.delta.type === "text_delta") open.text += event.delta.text;
      else if (event.delta.type === "thinking_delta") open.thinking += event.delta.thinking;
      else if (event.delta.type === "input_json_delta") open.json = (open.json ?? "") + event.delta.partial_json;
      else assert.fail(event.delta.type);
    } else {
      assert.fail(event.type);
    }
  }
  assert.equal(open, null);
  return { events, blocks, start: events[0].message, end: events.at(-2) };
}

/** What a message says, without what differs from one to the next. */
const said = (blocks) => blocks.map((block) => ({ ...block, id: undefined }));

/** An error in this API's form. */
async function refused(status, param, call) {
  try {
    await call();
  } catch (error) {
    assert.equal(error.status, status, error.message);
    assert.equal(error.error.type, "error");
    assert.equal(error.error.error.param ?? null, param, error.message);
    assert.ok(error.error.error.message.length > 0);
    return error.error.error;
  }
  assert.fail(`was not refused with ${status}`);
}

await run({
  async "a message, whole"() {
    const message = await create("What is the capital of Finland?");
    assert.equal(message.type, "message");
    assert.equal(message.role, "assistant");
    assert.match(message.id, /^msg_/);
    assert.match(text(message), /Helsinki/);
    assert.deepEqual(message.content.map((block) => block.type), ["text"], "no thoughts unless asked for");
    assert.equal(message.stop_reason, "end_turn");
    assert.equal(message.stop_sequence, null);
    assert.ok(message.usage.input_tokens + message.usage.cache_read_input_tokens > 0);
    assert.ok(message.usage.output_tokens > 0);
    assert.equal(message.timings.predicted_n, message.usage.output_tokens);
  },
  async "it says what chat completions say"() {
    const question = "Tell me a story about a mouse.";
    const sampling = { temperature: 0.7, top_k: 50, top_p: 0.9, seed: 3, max_tokens: 60 };
    const chat = await (
      await post("/v1/chat/completions", {
        messages: [ROBOT, { role: "user", content: question }],
        reasoning_effort: "none",
        ...sampling,
      })
    ).json();
    for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
      const more = { system: ROBOT.content, ...sampling, speculative };
      assert.equal(text(await create(question, more)), chat.choices[0].message.content);
    }
  },
  async "a stream is the whole message"() {
    const request = ask([{ type: "text", text: "Tell me a story about a mouse." }]);
    const whole = await client.messages.create(request);
    const { events, blocks, start, end } = await streamed(request);
    assert.deepEqual(said(blocks), said(whole.content));
    assert.equal(end.delta.stop_reason, whole.stop_reason);
    assert.equal(end.usage.output_tokens, whole.usage.output_tokens);
    assert.equal(start.usage.output_tokens, 0);
    assert.ok(events.filter((event) => event.type === "content_block_delta").length > 4);
  },
  async "the client's own stream helper"() {
    let heard = "";
    const stream = client.messages.stream(ask("What is the capital of Finland?"));
    stream.on("text", (piece) => (heard += piece));
    const final = await stream.finalMessage();
    assert.equal(text(final), heard);
    assert.match(heard, /Helsinki/);
    assert.ok(final.usage.output_tokens > 0);
  },
  async "stop sequences and limits"() {
    const question = "Tell me a story about a fox.";
    const free = text(await create(question));
    const stop = free.slice(12, 17);
    const cut = await create(question, { stop_sequences: ["never said", stop] });
    assert.equal(text(cut), free.slice(0, free.indexOf(stop)));
    assert.equal(cut.stop_reason, "stop_sequence");
    assert.equal(cut.stop_sequence, stop);
    const { end } = await streamed(ask(question, { stop_sequences: [stop] }));
    assert.deepEqual(end.delta, { stop_reason: "stop_sequence", stop_sequence: stop });
    const short = await create(question, { max_tokens: 5 });
    assert.equal(short.stop_reason, "max_tokens");
    assert.equal(short.usage.output_tokens, 5);
  },
  async "a begun turn of the assistant is continued"() {
    const question = { role: "user", content: "What is the capital of Finland?" };
    const whole = text(await create(question.content));
    const begun = whole.slice(0, whole.indexOf(" is"));
    const rest = await create("", { messages: [question, { role: "assistant", content: begun }] });
    assert.match(begun + text(rest), /Helsinki/);
    assert.ok(!text(rest).startsWith(begun));
  },
  async "thoughts are blocks, within their budget"() {
    const request = ask("What is 12 plus 30?", { thinking: { type: "enabled", budget_tokens: 64 } });
    const { blocks, end } = await streamed(request);
    assert.deepEqual(blocks.map((block) => block.type), ["thinking", "text"]);
    assert.ok(blocks[0].thinking.length > 0 && blocks[1].text.length > 0);
    assert.ok(end.usage.output_tokens_details.thinking_tokens > 0);
    assert.deepEqual(said((await client.messages.create(request)).content), said(blocks));
    const tight = await create("What is 12 plus 30?", { thinking: { type: "enabled", budget_tokens: 2 } });
    assert.ok(tight.usage.output_tokens_details.thinking_tokens <= 4, "label and budget");
    const adaptive = await create("What is 12 plus 30?", { thinking: { type: "adaptive" }, output_config: { effort: "low" } });
    assert.equal(adaptive.content[0].type, "thinking");
    const turns = [...request.messages, { role: "assistant", content: blocks }, { role: "user", content: "Hello." }];
    assert.ok(text(await client.messages.create({ ...request, messages: turns })).length > 0);
  },
  async "speech, then a tool, and its result"() {
    const request = ask("Please look left.", { system: [{ type: "text", text: ROBOT.content }], tools: OWN_TOOLS });
    const whole = await client.messages.create(request);
    assert.equal(whole.stop_reason, "tool_use");
    assert.deepEqual(whole.content.map((block) => block.type), ["text", "tool_use"]);
    const use = whole.content[1];
    assert.equal(use.name, "look_at");
    assert.deepEqual(use.input, { direction: "left" });
    const { blocks } = await streamed(request);
    assert.deepEqual(said(blocks), said(whole.content));
    const result = { type: "tool_result", tool_use_id: use.id, content: [{ type: "text", text: '{"ok":true}' }] };
    const turns = [...request.messages, { role: "assistant", content: whole.content }, { role: "user", content: [result] }];
    const after = await client.messages.create({ ...request, messages: turns });
    assert.ok(text(after).length > 0);
    assert.ok(after.usage.cache_read_input_tokens > after.usage.input_tokens);
  },
  async "choices of tools"() {
    const request = ask("Hello.", { system: ROBOT.content, tools: OWN_TOOLS });
    const uses = (message) => message.content.filter((block) => block.type === "tool_use");
    const one = { disable_parallel_tool_use: true };
    const any = await client.messages.create({ ...request, tool_choice: { type: "any", ...one } });
    assert.equal(uses(any).length, 1);
    assert.equal(any.stop_reason, "tool_use");
    const named = await client.messages.create({ ...request, tool_choice: { type: "tool", name: "describe_view", ...one } });
    assert.equal(uses(named)[0].name, "describe_view");
    const none = await client.messages.create({ ...request, tool_choice: { type: "none" } });
    assert.equal(uses(none).length, 0);
    await refused(400, "tool_choice", () => client.messages.create({ ...request, tool_choice: { type: "tool", name: "fly" } }));
  },
  async "formats"() {
    const schema = {
      type: "object",
      properties: { city: { type: "string", maxLength: 20 } },
      required: ["city"],
      additionalProperties: false,
    };
    const message = await create("What is the capital of Finland?", { output_config: { format: { type: "json_schema", schema } } });
    assert.deepEqual(Object.keys(JSON.parse(text(message))), ["city"]);
  },
  async "tokens are counted"() {
    const request = ask("Please look left.", { system: ROBOT.content, tools: OWN_TOOLS });
    const { model: name, system, tools, messages } = request;
    const counted = await client.messages.countTokens({ model: name, system, tools, messages });
    const { usage } = await client.messages.create({ ...request, max_tokens: 1 });
    assert.equal(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
  },
  async "errors in this API's form name its fields"() {
    const bad = [
      ["messages", { messages: [] }],
      ["messages[0].role", { messages: [{ role: "wizard", content: "x" }] }],
      ["messages[0].content[0]", { messages: [{ role: "user", content: [{ type: "image", source: {} }] }] }],
      ["messages[0].content[0].tool_use_id", { messages: [{ role: "user", content: [{ type: "tool_result", content: "x" }] }] }],
      ["tools[0]", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
      ["tool_choice.type", { tool_choice: { type: "some" }, tools: OWN_TOOLS }],
      ["max_tokens", { max_tokens: 0 }],
      ["stop_sequences", { stop_sequences: Array(100).fill("a") }],
      ["thinking.type", { thinking: { type: "between_tools" } }],
      ["output_config.effort", { thinking: { type: "adaptive" }, output_config: { effort: "enormous" } }],
      ["output_config.format.schema", { output_config: { format: { type: "json_schema" } } }],
      ["mcp_servers", { mcp_servers: [{}] }],
      ["temperature", { temperature: -1 }],
      ["n", { n: 2 }],
      ["frobnicate", { frobnicate: 1, strict: true }],
    ];
    for (const [param, more] of bad) {
      const error = await refused(400, param, () => create("Hello.", more));
      assert.equal(error.type, "invalid_request_error");
    }
    await create("Hello.", { frobnicate: 1, metadata: { user_id: "me" }, max_tokens: 2 });
    assert.equal((await refused(404, null, () => create("Hello.", { model: "another" }))).type, "not_found_error");
    const stranger = new Anthropic({ baseURL: base, apiKey: "wrong", maxRetries: 0 });
    assert.equal((await refused(401, null, () => stranger.messages.create(ask("Hello.")))).type, "authentication_error");
    const large = await post("/v1/messages", "x".repeat(5 << 20));
    assert.equal(large.status, 413);
    assert.equal((await large.json()).error.type, "request_too_large");
  },
  async "cancel by id"() {
    const request = ask("Tell me a story about a mouse.", { ignore_eos: true, max_tokens: 700, request_id: "msg-mine" });
    let told = false;
    let detail = null;
    for await (const event of await client.messages.create({ ...request, stream: true })) {
      if (!told && event.type === "content_block_delta") {
        told = true;
        assert.equal((await post("/v1/requests/msg-mine/cancel", "")).status, 200);
      }
      if (event.type === "message_delta") detail = event.finish_detail;
    }
    assert.equal(detail, "cancelled");
  },
});
