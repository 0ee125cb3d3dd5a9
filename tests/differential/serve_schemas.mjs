// Replies under json_schema, drafted and plain, and the form of all replies, judged by an independent validator (npm
// `ajv`), on a running server:
//   node serve_schemas.mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import Ajv from "ajv/dist/2020.js";
import { ROBOT, TOOLS, post, run } from "./serve_client.mjs";

const string = { type: "string", maxLength: 12 };
const object = (properties, more = {}) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});

const SCHEMAS = {
  "strings and whole numbers": object({ name: string, count: { type: "integer", minimum: 0, maximum: 99 } }),
  "an enum": object({ mood: { enum: ["happy", "sad", "curious"] } }),
  "a constant": object({ kind: { const: "greeting" }, loud: { type: "boolean" } }),
  "values that are none": object({ nothing: { type: "null" }, maybe: { type: ["boolean", "null"] } }),
  "a list of its length": { type: "array", items: { type: "integer", minimum: 1, maximum: 9 }, minItems: 3, maxItems: 3 },
  "a list within limits": object({ words: { type: "array", items: string, minItems: 1, maxItems: 3 } }),
  "lists in lists": { type: "array", minItems: 2, maxItems: 2, items: { type: "array", items: { type: "boolean" }, minItems: 1, maxItems: 2 } },
  "a tuple": { type: "array", prefixItems: [{ type: "integer", minimum: 0, maximum: 5 }, { type: "boolean" }], items: false, minItems: 2 },
  "objects in objects": object({ robot: object({ head: object({ direction: { enum: ["left", "right"] } }) }) }),
  "members that may be left out": object({ a: { type: "boolean" }, b: { type: "boolean" } }, { required: ["a"] }),
  "a text of its length": object({ word: { type: "string", minLength: 4, maxLength: 4 } }),
  "a pattern": object({ code: { type: "string", pattern: "^[A-C]{2}-[0-9]{3}$" } }),
  "numbers between": object({ number: { type: "integer", exclusiveMinimum: 10, exclusiveMaximum: 15 } }),
  "negative numbers": object({ number: { type: "integer", minimum: -20, maximum: -3 } }),
  "one of two forms": object({ value: { anyOf: [{ type: "integer", minimum: 0, maximum: 9 }, { enum: ["none"] }] } }),
  "definitions": object({ from: { $ref: "#/$defs/place" }, to: { $ref: "#/$defs/place" } }, {
    $defs: { place: object({ x: { type: "integer", minimum: 0, maximum: 9 }, y: { type: "integer", minimum: 0, maximum: 9 } }) },
  }),
  "a tree": {
    $ref: "#/$defs/node",
    $defs: { node: object({ leaf: { type: "boolean" }, next: { anyOf: [{ type: "null" }, { $ref: "#/$defs/node" }] } }) },
  },
  "other members of one type": {
    type: "object", properties: { first: { type: "boolean" } }, required: ["first"],
    additionalProperties: { type: "integer", minimum: 0, maximum: 9 },
  },
  "an action with its arguments": object({
    say: { type: "string", maxLength: 30 },
    action: object({ name: { enum: ["look_at", "nod"] }, speed: { enum: ["slow", "fast"] } }),
  }),
  "names beyond ASCII": object({ "größe": { enum: ["groß", "klein"] }, "色": { const: "赤" } }),
};

const ajv = new Ajv({ strict: false });
const reply = async (schema, more) => {
  const answer = await post("/v1/chat/completions", {
    messages: [ROBOT, { role: "user", content: "Tell me about you." }],
    response_format: { type: "json_schema", json_schema: { name: "reply", strict: true, schema } },
    reasoning_effort: "none",
    max_tokens: 300,
    ...more,
  });
  const body = await answer.json();
  assert.equal(answer.status, 200, JSON.stringify(body));
  return body.choices[0];
};

const checks = {};
for (const [name, schema] of Object.entries(SCHEMAS)) {
  checks[name] = async () => {
    const valid = ajv.compile(schema);
    let complete = 0;
    for (const sampling of [{ temperature: 0 }, { temperature: 1, seed: 1 }, { temperature: 4, seed: 2 }]) {
      const texts = [];
      for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
        const { message, finish_reason } = await reply(schema, { ...sampling, speculative });
        texts.push(message.content);
        if (finish_reason !== "stop") continue; // a tree may grow for ever
        complete += 1;
        assert.ok(valid(JSON.parse(message.content)), `${message.content}: ${ajv.errorsText(valid.errors)}`);
      }
      assert.equal(texts[0], texts[1]);
    }
    assert.ok(complete > 0, "none was complete");
  };
}

// The objects of the API as strict clients take them apart: every required member, null where there is nothing.
const required = (properties, more = {}) => ({ type: "object", properties, required: Object.keys(properties), ...more });
const count = { type: "integer", minimum: 0 };
const text = { type: "string" };
const or_null = (schema) => ({ anyOf: [schema, { type: "null" }] });
const usage = required({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: required({ cached_tokens: count, audio_tokens: count }),
  completion_tokens_details: required({
    reasoning_tokens: count,
    audio_tokens: count,
    accepted_prediction_tokens: count,
    rejected_prediction_tokens: count,
  }),
});
const scored = { token: text, logprob: { type: "number", maximum: 0 }, bytes: or_null({ type: "array", items: { type: "integer", minimum: 0, maximum: 255 } }) };
const logprobs = or_null(required({
  content: or_null({ type: "array", items: required({ ...scored, top_logprobs: { type: "array", items: required(scored) } }) }),
  refusal: { type: "null" },
}));
const finish = { enum: ["stop", "length", "tool_calls"] };
const call = required({ id: { type: "string", minLength: 1 }, type: { const: "function" }, function: required({ name: text, arguments: text }) });
const head = (object, model = text) => ({ id: { type: "string", minLength: 1 }, object: { const: object }, created: { type: "integer", minimum: 1 }, model });
const REPLY = required({
  ...head("chat.completion"),
  choices: {
    type: "array",
    minItems: 1,
    items: required({
      index: count,
      finish_reason: finish,
      logprobs,
      message: required({ role: { const: "assistant" }, content: or_null(text), refusal: { type: "null" } }, {
        properties: { role: { const: "assistant" }, content: or_null(text), refusal: { type: "null" }, tool_calls: { type: "array", minItems: 1, items: call } },
      }),
    }),
  },
  usage,
});
const CHUNK = required({
  ...head("chat.completion.chunk"),
  choices: {
    type: "array",
    items: required({
      index: count,
      finish_reason: or_null(finish),
      delta: {
        type: "object",
        properties: {
          role: { const: "assistant" },
          content: or_null(text),
          tool_calls: { type: "array", items: required({ index: count }, { properties: { index: count, id: text, type: { const: "function" } } }) },
        },
      },
    }),
  },
}, { properties: { usage: or_null(usage) } });
const COMPLETION = required({
  ...head("text_completion"),
  choices: { type: "array", minItems: 1, items: required({ index: count, text, finish_reason: finish, logprobs: or_null({ type: "object" }) }) },
  usage,
});

const user = (content) => ({ role: "user", content });
const KINDS = {
  plain: { messages: [user("What is the capital of Finland?")] },
  thinking: { messages: [user("What is 12 plus 30?")], reasoning_effort: "high" },
  calling: { messages: [ROBOT, user("Please look left.")], tools: TOOLS },
  scored: { messages: [user("Hello.")], logprobs: true, top_logprobs: 2, max_tokens: 6 },
  several: { messages: [user("Hello.")], n: 3, max_tokens: 6, temperature: 1 },
  cut: { messages: [user("Tell me a story.")], max_tokens: 2 },
};
for (const [name, kind] of Object.entries(KINDS)) {
  checks[`the form of a reply: ${name}`] = async () => {
    const wanted = { temperature: 0, max_tokens: 200, reasoning_effort: "none", ...kind };
    const whole = await (await post("/v1/chat/completions", wanted)).json();
    const valid = ajv.compile(REPLY);
    assert.ok(valid(whole), `${ajv.errorsText(valid.errors)}: ${JSON.stringify(whole)}`);
    assert.equal(whole.choices[0].message.tool_calls !== undefined, name === "calling");
    const stream = await (await post("/v1/chat/completions", { ...wanted, stream: true, stream_options: { include_usage: true } })).text();
    const chunks = stream.split("\n\n").filter((event) => event.startsWith("data: {")).map((event) => JSON.parse(event.slice(6)));
    const fits = ajv.compile(CHUNK);
    assert.ok(chunks.length > 2);
    for (const chunk of chunks) assert.ok(fits(chunk), `${ajv.errorsText(fits.errors)}: ${JSON.stringify(chunk)}`);
    assert.ok(chunks.at(-1).usage.total_tokens > 0);
  };
}
checks["the form of a completion"] = async () => {
  for (const more of [{}, { logprobs: 2 }, { prompt: ["One", "Two"] }]) {
    const whole = await (await post("/v1/completions", { prompt: "In the beginning", max_tokens: 6, ...more })).json();
    const valid = ajv.compile(COMPLETION);
    assert.ok(valid(whole), `${ajv.errorsText(valid.errors)}: ${JSON.stringify(whole)}`);
  }
};
await run(checks);
