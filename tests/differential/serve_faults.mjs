// Kinds of fault that users of comparable servers have reported (docs/known_faults.md), tried on a running server.
//   node serve_faults.mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { base, headers, get, page_status, post, run, ROBOT, TOOLS } from "./serve_client.mjs";

const user = (content) => ({ role: "user", content });
const chat = (more, content = "What is a river?") =>
  post("/v1/chat/completions", { messages: [user(content)], temperature: 0, max_tokens: 24, ...more });
async function whole(more, content) {
  const reply = await chat(more, content);
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  return JSON.parse(text);
}
async function chunks(more) {
  const reply = await chat({ ...more, stream: true });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  assert.ok(text.endsWith("data: [DONE]\n\n"));
  return text.split("\n\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)));
}
const nested = (depth, open, close) => open.repeat(depth) + close.repeat(depth);
const schemaFormat = (schema) => ({ response_format: { type: "json_schema", json_schema: { name: "s", schema, strict: true } } });
function deepSchema(depth) {
  let schema = { type: "string" };
  for (let i = 0; i < depth; ++i) schema = { type: "array", items: schema };
  return schema;
}
const context = (await (await get("/v1/models")).json()).data[0].max_model_len;

await run({
  // First of all, while nothing else begins as this talk does.
  async "fifty turns, each paying for what is new"() {
    const messages = [ROBOT];
    let [old, again, all] = [0, 0, 0];
    for (let turn = 0; turn < 50; ++turn) {
      messages.push(user(`Turn ${turn}: ${["Hello!", "What is a river?", "Nod."][turn % 3]}`));
      const { choices, usage } = await whole({ messages, max_tokens: 6, chat_template_kwargs: { enable_thinking: false } });
      const cached = usage.prompt_tokens_details.cached_tokens;
      // Where drafts begin to pay again, the drafter is shown 64 rows and a block.
      assert.ok(cached >= old - 72, `turn ${turn}: ${cached} of the ${old} tokens before were there`);
      again += Math.max(0, old - cached);
      all += old;
      old = usage.prompt_tokens;
      messages.push({ role: "assistant", content: choices[0].message.content });
    }
    assert.ok(again < all / 20, `${again} of ${all} tokens were read again`);
    assert.ok(old > context / 3, "the talk outgrows every window");
  },

  async "sources that are nested, endless or wrong are refused"() {
    const bad = {
      regex_groups: { regex: nested(60000, "(", ")") },
      regex_classes: { regex: "[a".repeat(60000) },
      regex_counts: { regex: "((((a{1000}){1000}){1000}){1000})" },
      regex_quantifier: { regex: "(?<=x)*" },
      regex_star: { regex: "*" },
      grammar_groups: { grammar: `root ::= ${nested(60000, "(", ")")}` },
      grammar_unclosed: { grammar: `root ::= ${"(".repeat(60000)}` },
      grammar_half: { grammar: "rout::=" },
      grammar_endless: { grammar: "root ::= root" },
      grammar_circle: { grammar: "root ::= a\na ::= b\nb ::= a" },
      schema_depth: schemaFormat(deepSchema(50)),
      schema_pattern: schemaFormat({ type: "string", pattern: nested(60000, "(", ")") }),
      schema_lookbehind: schemaFormat({ type: "string", pattern: "(?<=x)*" }),
      schema_escape: schemaFormat({ type: "string", pattern: "\\k" }),
      schema_key: schemaFormat({ type: "string", patern: "a" }),
      schema_not: schemaFormat({ not: { type: "string" } }),
      schema_reference: schemaFormat({ $ref: "#" }),
      schema_missing_reference: schemaFormat({ $ref: "#/nothing" }),
      schema_lengths: schemaFormat({ type: "string", minLength: 5, maxLength: 2 }),
      schema_counts: schemaFormat({ type: "array", items: { type: "string" }, minItems: 1e9 }),
      choice_none: { choice: [] },
    };
    for (const [name, more] of Object.entries(bad)) {
      const reply = await chat(more);
      const text = await reply.text();
      assert.equal(reply.status, 400, `${name}: ${reply.status} ${text.slice(0, 200)}`);
      assert.ok(JSON.parse(text).error.message, name);
    }
    await whole();
  },

  async "absurd values are refused"() {
    const many = (n, one) => Array.from({ length: n }, one);
    const bad = {
      n: { n: 1e9 },
      temperature: { temperature: 999999 },
      top_p: { top_p: -1 },
      repeat_penalty: { repeat_penalty: 0 },
      negative_penalty: { repetition_penalty: -1 },
      max_tokens: { max_tokens: 0 },
      logit_bias: { logit_bias: Object.fromEntries(many(100000, (_, i) => [i, 1])) },
      stop: { stop: many(100000, (_, i) => `s${i}`) },
      messages: { messages: many(100000, () => user("a")) },
      tools: { tools: many(1000, (_, i) => ({ type: "function", function: { name: `t${i}` } })) },
      stop_token_ids: { stop_token_ids: many(1000, (_, i) => i) },
      // Read in time that grows with their length: the square of these would take the server minutes.
      objects: { messages: many(400000, () => ({})) },
      wide_objects: { metadata: many(60, () => Object.fromEntries(many(4000, (_, i) => [`k${i}`, 1]))) },
      calls: { messages: [{ role: "assistant", tool_calls: many(20000, (_, i) => ({ id: `c${i}`, function: { name: "f" } })) }, user("a")] },
      arguments: { messages: [{ role: "assistant", tool_calls: [{ id: "c", function: { name: "f", arguments: `[${"{},".repeat(400000)}{}]` } }] }, user("a")] },
    };
    for (const [name, more] of Object.entries(bad)) {
      const reply = await chat(more);
      const text = await reply.text();
      assert.ok([400, 413].includes(reply.status), `${name}: ${reply.status} ${text.slice(0, 200)}`);
      assert.ok(JSON.parse(text).error.message, name);
    }
    for (const text of ['{"messages":[{"role":"user","content":"x"}],"temperature":NaN}', '{"messages":[{"role":"user","content":"\\ud800"}]}']) {
      assert.equal((await post("/v1/chat/completions", text)).status, 400, text);
    }
    await whole();
  },

  async "a prompt of many megabytes is refused before it is read"() {
    const size = 100 * 1024 * 1024;
    const status = await new Promise((resolve) => {
      const { hostname, port } = new URL(base);
      const request = http.request(
        { hostname, port, path: "/v1/chat/completions", method: "POST", headers: { ...headers, "content-length": size } },
        (reply) => resolve(reply.statusCode),
      );
      request.on("error", () => resolve("cut"));
      request.write('{"messages":[{"role":"user","content":"');
    });
    assert.equal(status, 413);
    await whole();
  },

  async "a prompt as long as the context, and longer"() {
    const ask = async (length) => {
      const reply = await post("/v1/completions", { prompt: new Array(length).fill(300), max_tokens: 5, temperature: 0 });
      return [reply.status, await reply.json()];
    };
    const [fits, last] = await ask(context - 1);
    assert.equal(fits, 200);
    assert.equal(last.usage.completion_tokens, 1);
    for (const length of [context, context + 1, 10 * context]) {
      const [status, { error }] = await ask(length);
      assert.equal(status, 400);
      assert.equal(error.code, "context_length_exceeded");
      assert.ok(error.message.includes(`${length}`) && error.message.includes(`${context}`), error.message);
    }
    await whole();
  },

  async "texts at the edge are served and come back"() {
    const texts = ["", " ", "\n", "\0", "\t\t\t\t\t\tword", "[toxicity=0]", "<pad>text<eos>", "two words", "\u{1F9A6}\u0301", "a\r\nb"];
    for (let i = 1; i <= 40; ++i) texts.push("\n".repeat(i), `${"\n".repeat(i)} ${" ".repeat(i)}x`);
    for (const content of texts) {
      const { tokens } = await (await post("/tokenize", { content, parse_special: false })).json();
      const back = await (await post("/detokenize", { tokens })).json();
      assert.equal(back.content, content);
    }
    for (const content of texts.slice(0, 8)) await whole({ max_tokens: 2 }, content);
    const pieces = await (await post("/tokenize", { content: "\u{1F9A6}", with_pieces: true })).json();
    const bytes = pieces.tokens.flatMap(({ piece }) => (Array.isArray(piece) ? piece : [...Buffer.from(piece)]));
    assert.equal(Buffer.from(bytes).toString(), "\u{1F9A6}");
  },

  async "an empty message of the assistant at the end"() {
    for (const enable_thinking of [true, false]) {
      const { choices } = await whole({
        messages: [user("Hello!"), { role: "assistant", content: "" }],
        chat_template_kwargs: { enable_thinking },
      });
      assert.ok(choices[0].finish_reason);
    }
  },

  async "the newer limit wins"() {
    const { usage, choices } = await whole({ max_tokens: 3, max_completion_tokens: 7, ignore_eos: true });
    assert.equal(usage.completion_tokens, 7);
    assert.equal(choices[0].finish_reason, "length");
  },

  async "every field that a reply must have is there"() {
    const reply = await whole();
    for (const field of ["id", "object", "created", "model", "choices", "usage"]) assert.ok(field in reply, field);
    for (const field of ["index", "message", "logprobs", "finish_reason"]) assert.ok(field in reply.choices[0], field);
    for (const field of ["role", "content", "refusal"]) assert.ok(field in reply.choices[0].message, field);
    for (const field of ["prompt_tokens", "completion_tokens", "total_tokens"]) assert.ok(field in reply.usage, field);
    for (const chunk of await chunks()) {
      for (const field of ["id", "object", "created", "model", "choices"]) assert.ok(field in chunk, field);
      for (const choice of chunk.choices) {
        for (const field of ["index", "delta", "finish_reason"]) assert.ok(field in choice, field);
      }
    }
  },

  async "usage comes when it is asked for, and last"() {
    assert.ok((await chunks()).every((chunk) => !chunk.usage));
    const asked = await chunks({ stream_options: { include_usage: true } });
    assert.ok(asked.at(-1).usage.completion_tokens > 0);
    assert.equal(asked.at(-1).choices.length, 0);
    assert.ok(asked.slice(0, -1).every((chunk) => !chunk.usage));
  },

  async "a thought that is cut leaves content there and empty"() {
    for (const max_tokens of [2, 4, 6]) {
      const { choices, usage } = await whole({ max_tokens, chat_template_kwargs: { enable_thinking: true } }, "What is the capital of Finland?");
      assert.equal(choices[0].finish_reason, "length");
      assert.equal(choices[0].message.content, "");
      assert.equal(usage.completion_tokens, max_tokens);
      assert.ok(usage.completion_tokens_details.reasoning_tokens <= max_tokens);
      if (max_tokens > 4) assert.ok(choices[0].message.reasoning_content);
    }
  },

  async "thinking follows the template where nothing is said"() {
    const facts = async (more) => JSON.stringify((await whole(more, "What is the capital of Finland?")).choices[0].message);
    const thought = await facts({ max_tokens: 60, chat_template_kwargs: { enable_thinking: true } });
    assert.equal(await facts({ max_tokens: 60 }), thought);
    assert.ok(thought.includes("reasoning_content"));
  },

  async "two tools: streamed and whole, drafted and not"() {
    for (const tool_choice of ["auto", "required", { type: "function", function: { name: "look_at" } }]) {
      const request = { messages: [ROBOT, user("Look to the left and nod.")], tools: TOOLS, tool_choice, max_tokens: 80 };
      const expected = (await whole(request)).choices[0];
      for (const more of [{}, { speculative: { enabled: false } }, { speculative: { policy: "fixed" } }]) {
        let content = "";
        const calls = [];
        for (const { choices } of await chunks({ ...request, ...more })) {
          content += choices[0]?.delta.content ?? "";
          for (const call of choices[0]?.delta.tool_calls ?? []) {
            const one = (calls[call.index] ??= { name: "", arguments: "" });
            one.name += call.function.name ?? "";
            one.arguments += call.function.arguments ?? "";
          }
        }
        assert.equal(content, expected.message.content ?? "");
        assert.deepEqual(calls, (expected.message.tool_calls ?? []).map((call) => ({ name: call.function.name, arguments: call.function.arguments })));
      }
    }
  },

  async "a call of a tool that is not there is speech without markers"() {
    // The model calls what the talk has called before, whatever the request offers.
    const call = { id: "c1", type: "function", function: { name: "look_at", arguments: '{"direction":"right"}' } };
    const talk = [
      ROBOT, user("Please look right."), { role: "assistant", content: "I look right.", tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: "done" }, { role: "assistant", content: "Done." }, user("Please look left."),
    ];
    const quiet = { chat_template_kwargs: { enable_thinking: false }, max_tokens: 60 };
    for (const more of [{ messages: talk }, { messages: talk, tools: [TOOLS[2]] }, { messages: talk, tools: TOOLS, tool_choice: "none" }]) {
      let called = 0;
      for (let seed = 0; seed < 8; ++seed) {
        const request = { ...quiet, ...more, seed, temperature: seed === 0 ? 0 : 1 };
        const { message } = (await whole(request)).choices[0];
        assert.ok(!(message.tool_calls ?? []).some((made) => made.function.name === "look_at"), JSON.stringify(message));
        assert.ok(!/<\|?[a-z_"]+\|?>/.test(message.content), message.content);
        called += /call:look_at/.test(message.content) ? 1 : 0;
        const streamed = (await chunks(request)).map(({ choices }) => choices[0]?.delta.content ?? "").join("");
        assert.equal(streamed, message.content);
      }
      assert.ok(called > 0, "nobody called, so nothing was seen");
    }
  },

  async "texts of tools never become part of the grammar"() {
    const tricky = 'quotes " \' ` backslash \\ braces {}[]() newline \n tab \t unicode \u{1F9A6} root ::= "x" <|tool_call> (?<=x)*';
    const tools = structuredClone(TOOLS);
    for (const tool of tools) {
      tool.function.strict = true;
      tool.function.description = tricky;
      tool.function.parameters.additionalProperties = false;
      for (const property of Object.values(tool.function.parameters.properties)) property.description = tricky;
    }
    const { choices } = await whole({ messages: [ROBOT, user("Look left.")], tools, tool_choice: "required", max_tokens: 120 });
    assert.ok(choices[0].message.tool_calls.length > 0);
    for (const call of choices[0].message.tool_calls) {
      assert.ok(TOOLS.some((tool) => tool.function.name === call.function.name));
      JSON.parse(call.function.arguments);
    }
  },

  async "an agent goes on behind the answer of its tool"() {
    const messages = [ROBOT, user("What do you see?")];
    const first = (await whole({ messages, tools: TOOLS, tool_choice: "required", max_tokens: 80 })).choices[0].message;
    messages.push(first);
    for (const call of first.tool_calls) messages.push({ role: "tool", tool_call_id: call.id, content: '{"view": "a red ball"}' });
    const then = (await whole({ messages, tools: TOOLS, max_tokens: 80 })).choices[0];
    assert.ok(then.message.content || then.message.tool_calls, JSON.stringify(then));
  },

  async "drafting stays on under a schema, and forced text is counted apart"() {
    const schema = { type: "object", properties: { a_long_key_of_the_object: { enum: ["alpha_alpha", "beta_beta"] } }, required: ["a_long_key_of_the_object"] };
    const request = { ...schemaFormat(schema), max_tokens: 300, speculative: { policy: "fixed" } };
    const drafted = await whole(request);
    assert.ok(drafted.timings.forced_n > 10, JSON.stringify(drafted.timings));
    assert.ok(!drafted.timings.draft_n || drafted.timings.draft_n_accepted <= drafted.timings.draft_n);
    const told = drafted.metrics.speculative_decoding;
    if (told) assert.equal(told.num_draft_tokens, drafted.timings.draft_n);
    const story = { ...schemaFormat({ type: "object", properties: { story: { type: "string" } }, required: ["story"] }), max_tokens: 60 };
    const free = await whole({ ...story, speculative: { policy: "fixed" } }, "Tell me a story about a fox.");
    assert.ok(free.timings.draft_n > 0 && free.timings.draft_n_accepted > 0, JSON.stringify(free.timings));
    const plain = await whole({ ...request, speculative: { enabled: false } });
    assert.equal(plain.choices[0].message.content, drafted.choices[0].message.content);
    const thoughtless = await whole({ ...request, chat_template_kwargs: { enable_thinking: false } });
    assert.ok(thoughtless.timings.forced_n > 10, JSON.stringify(thoughtless.timings));
  },

  async "long, short, long again on the same texts"() {
    const long = `${"A river flows through the land. ".repeat(40)} What is a river?`;
    const first = (await whole({}, long)).choices[0].message.content;
    await whole({}, "Hello!");
    await whole({}, long.slice(0, 400));
    assert.equal((await whole({}, long)).choices[0].message.content, first);
    assert.equal((await whole({ speculative: { enabled: false } }, long)).choices[0].message.content, first);
  },

  async "one of two is cancelled, and only that one"() {
    const ask = (request_id) => whole({ request_id, ignore_eos: true, max_tokens: 400 }, "Tell me a story about a fox.");
    const [a, b] = [ask("fault-a"), ask("fault-b")];
    await new Promise((resolve) => setTimeout(resolve, 5));
    while ((await post("/v1/requests/fault-a/cancel", {})).status === 404) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.equal((await a).choices[0].finish_detail, "cancelled");
    assert.equal((await b).usage.completion_tokens, 400);
  },

  async "every route but the open ones needs the key"() {
    const listed = fs.readFileSync(new URL("../../docs/http_api.md", import.meta.url), "utf8");
    const all = [...listed.split("## Fields")[0].matchAll(/`(GET|POST) (\/[^` ]*)`/g)].map((match) => match.slice(1));
    // What is open is listed here, what is there is listed in the sources: no route can slip through.
    const open = ["/health", "/"];
    const source = fs.readFileSync(new URL("../../src/octet/serve/server.cpp", import.meta.url), "utf8");
    const served = [...source.matchAll(/\{"(\/[^"]*)", \{"(GET|POST)"/g)].map(([, path, method]) => `${method} ${path}`);
    assert.ok(served.length > 10 && all.length > served.length);
    for (const route of served) assert.ok(all.some((known) => known.join(" ") === route), `${route} is not documented`);
    for (const [method, name] of all.filter(([, path]) => !open.includes(path))) {
      const path = name.replace("ID", "x").replace("NAME", "x");
      for (const authorization of [undefined, "Bearer wrong", "Basic a2V5", "Bearer "]) {
        const reply = await fetch(base + path, { method, headers: authorization ? { authorization } : {}, body: method === "POST" ? "{}" : undefined });
        assert.equal(reply.status, 401, `${method} ${path}`);
        await reply.text();
      }
    }
    for (const path of open) assert.notEqual((await fetch(base + path)).status, 401, path);
  },

  async "pages of other sites get nothing"() {
    for (const origin of ["https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example"]) {
      const reply = await fetch(`${base}/v1/models`, { headers: { ...headers, origin } });
      assert.equal(reply.status, 403, origin);
      assert.notEqual(reply.headers.get("access-control-allow-origin"), "*");
      assert.equal(reply.headers.get("access-control-allow-credentials"), null);
      await reply.text();
    }
    // The page that the server itself gave, under whatever name it was reached: there is a key.
    assert.equal(await page_status("robot.example:80", "http://robot.example:80"), 200);
    assert.equal(await page_status("robot.example", "https://robot.example"), 200, "behind a proxy with TLS");
    assert.equal(await page_status("robot.example", "http://evil.example"), 403);
    assert.equal(await page_status("robot.example", "http://robot.example.evil.example"), 403);
  },
});
