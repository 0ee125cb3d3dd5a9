// Replies under json_schema, drafted and plain, judged by an independent validator (npm `ajv`), on a running server:
//   node serve_schemas.mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import Ajv from "ajv/dist/2020.js";
import { ROBOT, post, run } from "./serve_client.mjs";

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
    for (const sampling of [{ temperature: 0 }, { temperature: 1, seed: 1 }, { temperature: 1, seed: 2 }]) {
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
await run(checks);
