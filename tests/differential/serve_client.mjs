// What the conformance clients share: the robot and its tools, plain requests, and the loop over checks.
//   node serve_....mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import http from "node:http";

export const [base, key] = process.argv.slice(2);

export const ROBOT = { role: "system", content: "You are Robi, an expressive tabletop companion robot." };
export const TOOLS = [
  {
    type: "function",
    function: {
      name: "play_animation",
      description: "Play an expressive head and antenna animation on the robot.",
      parameters: {
        type: "object",
        properties: {
          animation_name: {
            type: "string",
            description: "Name of the animation.",
            enum: ["happy_nod", "curious_tilt", "scan_room", "wave_antenna", "sad_droop", "little_dance"],
          },
          speed: { type: "string", description: "Speed of the animation.", enum: ["slow", "normal", "fast"] },
        },
        required: ["animation_name"],
      },
    },
  },
  {
    type: "function",
    function: {
      name: "look_at",
      description: "Turn the head of the robot to a direction.",
      parameters: {
        type: "object",
        properties: {
          direction: {
            type: "string",
            description: "Where to look.",
            enum: ["left", "right", "up", "down", "front"],
          },
        },
        required: ["direction"],
      },
    },
  },
  {
    type: "function",
    function: {
      name: "describe_view",
      description: "Describe what the camera sees.",
      parameters: { type: "object", properties: {}, required: [] },
    },
  },
];

export const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
/** The status that a page of `origin` gets which has opened this server under the name `host`. */
export const page_status = (host, origin) =>
  new Promise((resolve, reject) => {
    const request = http.get(`${base}/v1/models`, { agent: false, headers: { ...headers, host, origin } }, (reply) => {
      reply.resume();
      reply.on("end", () => resolve(reply.statusCode));
    });
    request.on("error", reject);
  });
export const get = (path) => fetch(base + path, { headers });
export const post = (path, body) =>
  fetch(base + path, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });

export async function idle() {
  for (let i = 0; i < 200; ++i) {
    const { requests } = await (await get("/props")).json();
    if (requests.running + requests.waiting === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail("a reply goes on that nobody reads");
}

/** The error of a call that must be refused. */
export async function refused(status, param, call) {
  try {
    await call();
  } catch (error) {
    assert.equal(error.status, status, error.message);
    assert.equal(error.param ?? null, param, error.message);
    assert.ok(error.type, "no type");
    return error;
  }
  assert.fail(`was not refused with ${status}`);
}

/** Prints one line a check; exit code 1 when any failed. */
export async function run(checks) {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok    ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name}: ${error.message}\n${error.stack}`);
    }
  }
  process.exit(failed === 0 ? 0 : 1);
}
