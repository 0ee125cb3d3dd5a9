// npm `openai`, unchanged, on the responses API of a running server with the shipped pair:
//   node serve_responses.mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import OpenAI from "openai";
import { ROBOT, TOOLS, base, get, key, post, refused, run } from "./serve_client.mjs";

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, timeout: 60_000 });
const model = (await client.models.list()).data[0].id;

const FLAT_TOOLS = TOOLS.map((tool) => ({ type: "function", strict: false, ...tool.function }));
const ask = (input, more = {}) => ({
  model,
  input,
  temperature: 0,
  max_output_tokens: 80,
  reasoning: { effort: "none" },
  ...more,
});
const create = (input, more) => client.responses.create(ask(input, more));

/** All events of a stream, numbered as they must be, and the response that they add up to. */
async function streamed(request) {
  const events = [];
  for await (const event of await client.responses.create({ ...request, stream: true })) {
    assert.equal(event.sequence_number, events.length);
    events.push(event);
  }
  assert.equal(events[0].type, "response.created");
  assert.equal(events[1].type, "response.in_progress");
  const last = events.at(-1);
  assert.match(last.type, /^response\.(completed|incomplete)$/);
  return { events, response: last.response };
}

/** Items put together from their events alone. */
function assembled(events) {
  const items = [];
  for (const event of events) {
    const item = items[event.output_index];
    if (event.type === "response.output_item.added") {
      assert.equal(event.output_index, items.length);
      assert.equal(event.item.status, "in_progress");
      items.push(structuredClone(event.item));
    } else if (event.type === "response.content_part.added") {
      assert.equal(event.item_id, item.id);
      item.content.push(structuredClone(event.part));
    } else if (/^response\.(output_text|reasoning_text)\.delta$/.test(event.type)) {
      item.content[event.content_index].text += event.delta;
    } else if (/^response\.(output_text|reasoning_text)\.done$/.test(event.type)) {
      assert.equal(item.content[event.content_index].text, event.text);
    } else if (event.type === "response.function_call_arguments.delta") {
      item.arguments += event.delta;
    } else if (event.type === "response.function_call_arguments.done") {
      assert.equal(item.arguments, event.arguments);
    } else if (event.type === "response.output_item.done") {
      item.status = event.item.status;
      assert.deepEqual(item, event.item);
    }
  }
  return items;
}

/** What a response says, without what differs from one to the next. */
const said = (response) =>
  response.output.map((item) => [item.type, item.name ?? null, item.arguments ?? item.content.map((part) => part.text)]);

await run({
  async "a response, whole"() {
    const response = await create("What is the capital of Finland?");
    assert.equal(response.object, "response");
    assert.equal(response.status, "completed");
    assert.match(response.id, /^resp_/);
    assert.match(response.output_text, /Helsinki/);
    assert.equal(response.output.length, 1);
    assert.equal(response.output[0].role, "assistant");
    assert.equal(response.error, null);
    assert.equal(response.incomplete_details, null);
    assert.equal(response.store, false);
    assert.equal(response.max_output_tokens, 80);
    const { usage } = response;
    assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
    assert.ok(usage.input_tokens_details.cached_tokens >= 0);
    assert.equal(usage.output_tokens_details.reasoning_tokens, 0);
    assert.equal(response.timings.predicted_n, usage.output_tokens);
  },
  async "it says what chat completions say"() {
    const text = "Tell me a story about a mouse.";
    const chat = await client.chat.completions.create({
      model,
      messages: [ROBOT, { role: "user", content: text }],
      temperature: 0.7,
      seed: 3,
      max_tokens: 60,
      reasoning_effort: "none",
    });
    for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
      const more = { instructions: ROBOT.content, temperature: 0.7, seed: 3, max_output_tokens: 60, speculative };
      assert.equal((await create(text, more)).output_text, chat.choices[0].message.content);
    }
  },
  async "a stream is the whole response"() {
    const request = ask("Tell me a story about a mouse.");
    const whole = await client.responses.create(request);
    const { events, response } = await streamed(request);
    assert.deepEqual(said(response), said(whole));
    assert.deepEqual(assembled(events), response.output);
    assert.equal(response.usage.output_tokens, whole.usage.output_tokens);
    assert.ok(events.filter((event) => event.type === "response.output_text.delta").length > 4);
  },
  async "the client's own stream helper"() {
    const request = ask("What is the capital of Finland?");
    let text = "";
    const stream = client.responses.stream(request);
    stream.on("response.output_text.delta", (event) => (text += event.delta));
    const final = await stream.finalResponse();
    assert.equal(final.output[0].content[0].text, text);
    assert.match(text, /Helsinki/);
  },
  async "limits make it incomplete"() {
    const { response } = await streamed(ask("Tell me a story about a fox.", { max_output_tokens: 5 }));
    assert.equal(response.status, "incomplete");
    assert.equal(response.incomplete_details.reason, "max_output_tokens");
    assert.equal(response.usage.output_tokens, 5);
    assert.equal(response.output[0].status, "incomplete");
  },
  async "thoughts are items of their own"() {
    const request = ask("What is 12 plus 30?", { reasoning: { effort: "low" } });
    const { events, response } = await streamed(request);
    assert.deepEqual(response.output.map((item) => item.type), ["reasoning", "message"]);
    assert.ok(response.output[0].content[0].text.length > 0);
    assert.deepEqual(assembled(events), response.output);
    assert.ok(response.usage.output_tokens_details.reasoning_tokens > 0);
    assert.deepEqual(said(await client.responses.create(request)), said(response));
    const short = await create("What is 12 plus 30?", { reasoning: {}, thinking_token_budget: 2 });
    assert.ok(short.usage.output_tokens_details.reasoning_tokens <= 4);
    // Sent back as they came, they change nothing: earlier thoughts are no part of a prompt.
    const again = await create([{ role: "user", content: "What is 12 plus 30?" }, ...response.output, { role: "user", content: "Hello." }]);
    assert.equal(again.status, "completed");
  },
  async "speech, then a call, and its answer"() {
    const request = ask("Please look left.", { instructions: ROBOT.content, tools: FLAT_TOOLS });
    const { events, response } = await streamed(request);
    assert.deepEqual(assembled(events), response.output);
    assert.deepEqual(response.output.map((item) => item.type), ["message", "function_call"]);
    const call = response.output[1];
    assert.equal(call.name, "look_at");
    assert.deepEqual(JSON.parse(call.arguments), { direction: "left" });
    assert.deepEqual(said(await client.responses.create(request)), said(response));
    const input = [
      { role: "user", content: [{ type: "input_text", text: "Please look left." }] },
      ...response.output,
      { type: "function_call_output", call_id: call.call_id, output: '{"ok":true}' },
    ];
    const after = await client.responses.create({ ...request, input });
    assert.ok(after.output_text.length > 0);
    assert.ok(after.usage.input_tokens_details.cached_tokens > response.usage.input_tokens / 2);
    assert.deepEqual(after.tools, FLAT_TOOLS);
  },
  async "choices of tools"() {
    const request = ask("Hello.", { instructions: ROBOT.content, tools: FLAT_TOOLS });
    const calls = (response) => response.output.filter((item) => item.type === "function_call");
    const any = await client.responses.create({ ...request, tool_choice: "required", parallel_tool_calls: false });
    assert.equal(calls(any).length, 1);
    const named = { type: "function", name: "describe_view" };
    const one = await client.responses.create({ ...request, tool_choice: named, parallel_tool_calls: false });
    assert.equal(calls(one)[0].name, "describe_view");
    const allowed = { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "look_at" }] };
    const some = await client.responses.create({ ...request, tool_choice: allowed });
    assert.ok(calls(some).length > 0 && calls(some).every((call) => call.name === "look_at"));
    assert.equal(calls(await client.responses.create({ ...request, tool_choice: "none" })).length, 0);
    await refused(400, "tool_choice", () =>
      client.responses.create({ ...request, tool_choice: { type: "function", name: "fly" } }));
  },
  async "formats, parsed by the client"() {
    const schema = {
      type: "object",
      properties: { city: { type: "string", maxLength: 20 }, country: { type: "string", maxLength: 20 } },
      required: ["city", "country"],
      additionalProperties: false,
    };
    const format = { type: "json_schema", name: "place", strict: true, schema };
    for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
      const parsed = await client.responses.parse(ask("What is the capital of Finland?", { text: { format }, speculative }));
      assert.deepEqual(Object.keys(parsed.output_parsed), ["city", "country"]);
    }
    const object = await create("What is a river?", { text: { format: { type: "json_object" } } });
    if (object.status === "completed") assert.equal(typeof JSON.parse(object.output_text), "object");
  },
  async "errors name the fields of this API"() {
    const bad = [
      ["input", { input: [] }],
      ["input[0].type", { input: [{ type: "item_reference", id: "x" }] }],
      ["input[0].content[0]", { input: [{ role: "user", content: [{ type: "input_image", image_url: "x" }] }] }],
      ["input[0].role", { input: [{ role: "wizard", content: "x" }] }],
      ["input[0].call_id", { input: [{ type: "function_call_output", output: "x" }] }],
      ["tools[0]", { tools: [{ type: "web_search" }] }],
      ["store", { store: true }],
      ["background", { background: true }],
      ["previous_response_id", { previous_response_id: "resp_1" }],
      ["conversation", { conversation: "conv_1" }],
      ["truncation", { truncation: "auto" }],
      ["include", { include: ["message.output_text.logprobs"] }],
      ["top_logprobs", { top_logprobs: 2 }],
      ["max_output_tokens", { max_output_tokens: 0 }],
      ["reasoning.effort", { reasoning: { effort: "enormous" } }],
      ["reasoning.summary", { reasoning: { summary: "detailed" } }],
      ["text.format.schema", { text: { format: { type: "json_schema", name: "x" } } }],
      ["text.format.type", { text: { format: { type: "xml" } } }],
      ["text.verbosity", { text: { verbosity: "high" } }],
      ["temperature", { temperature: -1 }],
      ["messages", { messages: [{ role: "user", content: "x" }] }],
      ["n", { n: 2 }],
      ["frobnicate", { frobnicate: 1, strict: true }],
    ];
    for (const [param, more] of bad) await refused(400, param, () => create("Hello.", more));
    await create("Hello.", {
      frobnicate: 1,
      user: "me",
      metadata: { a: "b" },
      store: false,
      include: ["reasoning.encrypted_content"],
      max_output_tokens: 2,
    });
    const long = await refused(400, "input", () => create("word ".repeat(20000)));
    assert.equal(long.code, "context_length_exceeded");
    const wrong = await get("/v1/responses");
    assert.equal(wrong.status, 405);
  },
  async "cancel by id"() {
    const request = ask("Tell me a story about a mouse.", { ignore_eos: true, max_output_tokens: 700, request_id: "resp-mine" });
    let last = null;
    for await (const event of await client.responses.create({ ...request, stream: true })) {
      if (last === null && event.type === "response.output_text.delta") {
        assert.equal((await post("/v1/requests/resp-mine/cancel", "")).status, 200);
        last = event;
      }
      last = last === null ? null : event;
    }
    assert.equal(last.type, "response.incomplete");
    assert.equal(last.response.incomplete_details.reason, "cancelled");
  },
});
