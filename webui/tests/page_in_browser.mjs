// page_in_browser.mjs OCTET [SCREENSHOT_FOLDER]: the page in Chromium against `octet serve` with the shipped pair.
// Exits with 0 when everything held; each check says what it looked at.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const [octet, folder] = process.argv.slice(2);
const models = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../models/bolt-tiny");

/** Starts a server on a free port and resolves to its address once it says that it listens. */
async function start_server(...more) {
  const server = spawn(octet, [
    "serve",
    ...["-m", `${models}/bolt-tiny-q8_0.gguf`, "-md", `${models}/bolt-tiny-dflash-q8_0.gguf`],
    ...["--port", "0", "-t", "1"],
    ...more,
  ]);
  const address = await new Promise((resolve, reject) => {
    for (const output of [server.stdout, server.stderr]) {
      createInterface({ input: output }).on("line", (line) => {
        const found = line.match(/http:\/\/127\.0\.0\.1:\d+/);
        if (found) {
          resolve(found[0]);
        }
      });
    }
    server.on("exit", (code) => reject(new Error(`octet serve ended with ${code}`)));
  });
  return { server, address };
}

// At the slowest kernels the tiny pair takes its time, so that there is something to watch and to stop.
// Whether drafts pay is the machine's matter; there have to be some.
const { server, address } = await start_server("--isa", "portable", "--draft-policy", "fixed");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});

async function picture(page, name) {
  if (folder !== undefined) {
    await page.screenshot({ path: path.join(folder, `${name}.png`) });
  }
}

async function say(page, text) {
  await page.fill("#message", text);
  await page.press("#message", "Enter");
}

/** A colour as the browser computes it, in red, green and blue from 0 to 1. */
const rgb = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map((part) => Number(part) / 255);
const luminance = (colour) =>
  rgb(colour)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** Colour and opaque background of every text that is shown, once each. */
const texts = (page) =>
  page.evaluate(() => {
    const found = new Map();
    for (const element of document.querySelectorAll("body *")) {
      const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim() !== "");
      const typed = (element.matches("input, textarea, select") && element.value !== "") || false;
      if (!(own || typed) || !element.checkVisibility() || element.matches(":disabled, :disabled *, .hidden, option")) continue;
      let behind = element;
      while (behind.parentElement && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
      const colours = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
      found.set(colours.join(), { colours, what: `${element.tagName}.${element.className} ${element.textContent.slice(0, 30)}` });
    }
    return [...found.values()];
  });

async function readable(page, theme) {
  const shown = await texts(page);
  assert.ok(shown.length >= 4, "hardly any text was looked at");
  for (const { colours, what } of shown) {
    const found = contrast(...colours);
    assert.ok(found >= 4.5, `${theme}: ${what} has a contrast of ${found.toFixed(2)} (${colours})`);
  }
}

/** How many pixels of each chart carry a line of the given custom property's colour. */
const drawn = (page, names) =>
  page.evaluate((wanted) => {
    const probe = document.createElement("span");
    document.body.append(probe);
    const colours = wanted.map((name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
    });
    probe.remove();
    return [...document.querySelectorAll(".chart canvas")].map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return colours.map((colour) => {
        let pixels = 0;
        for (let i = 0; i < data.length; i += 4) {
          pixels += data[i + 3] > 200 && colour.every((part, k) => Math.abs(data[i + k] - part) < 12) ? 1 : 0;
        }
        return pixels;
      });
    });
  }, names);

/** At once: a click waits for a page that stands still, and this one has text running in. */
const press = (page, name) => page.dispatchEvent(`button:text-is("${name}")`, "click");

/** Waits until what `found` resolves to is right: themes and charts follow the state behind the next frame. */
async function becomes(page, found, is_right, what) {
  let last = await found();
  for (let i = 0; i < 250 && !is_right(last); ++i) {
    await page.waitForTimeout(20);
    last = await found();
  }
  assert.ok(is_right(last), `${what}: ${last}`);
}
const back_turns = (page, is_right, what) =>
  becomes(page, () => page.evaluate(() => getComputedStyle(document.body).backgroundColor), (back) => is_right(luminance(back)), what);
const is_dark = (brightness) => brightness < 0.05;
const is_light = (brightness) => brightness > 0.8;

const ended = (page) => page.waitForSelector('button:text-is("Send")', { timeout: 60000 });

try {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 } });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  const foreign = [];
  page.on("request", (request) => request.url().startsWith(address) || request.url().startsWith("data:") || foreign.push(request.url()));

  await page.goto(`${address}/`);
  await page.waitForSelector(".subtitle:has-text('positions')");
  await page.click("summary:has-text('Settings')");
  await page.fill(".field:has-text('Temperature') input", "0");
  await page.uncheck(".check:has-text('Thinking') input");

  await say(page, "What is the capital of Finland?");
  await ended(page);
  const speech = page.locator(".assistant .speech").first();
  assert.match(await speech.innerText(), /Helsinki/, "the greedy answer");
  const drafted = await speech.locator(".drafted").allInnerTexts();
  assert.ok(drafted.join("").length > 10, "accepted drafts are marked");
  const figure = async (index) => Number(await page.locator(".live dd").nth(index).innerText());
  assert.ok((await figure(0)) > 0, "a rate is shown");
  assert.ok((await figure(1)) > 1 && (await figure(1)) <= 8, "an acceptance length is shown");
  assert.ok((await page.locator(".bars li").count()) > 0, "acceptance by position is shown");
  assert.equal(await page.locator(".chart canvas").count(), 2, "there are charts");
  const lines = () => drawn(page, ["--drafted", "--own"]);
  await becomes(page, lines, ([tokens]) => tokens[0] > 50, "accepted drafts are drawn");
  await becomes(page, lines, ([, times]) => times[0] > 50 && times[1] > 50, "times are drawn");
  await back_turns(page, is_light, "light is light");
  await readable(page, "light");
  await picture(page, "light");

  await page.uncheck(".check:has-text('Drafting') input");
  await page.click("text=New talk");
  await say(page, "What is the capital of Finland?");
  await ended(page);
  assert.equal(await page.locator(".drafted").count(), 0, "no drafts where drafting is off");
  assert.match(await speech.innerText(), /Helsinki/, "the same answer without drafts");

  // Thoughts are folded once speech begins.
  await page.check(".check:has-text('Thinking') input");
  await page.selectOption("select", "dark");
  await page.click("text=New talk");
  await say(page, "What is 12 plus 30?");
  await ended(page);
  const thought_is_open = () => page.locator(".thinking").first().evaluate((thought) => thought.open);
  assert.equal(await thought_is_open(), false, "the thought was folded");
  assert.ok((await page.locator(".thinking > div").first().textContent()).length > 5, "the thought can be read");
  assert.match(await page.locator(".thinking summary").first().innerText(), /Thought/);
  assert.ok((await speech.innerText()).length > 0, "speech follows it");
  await picture(page, "dark");
  await back_turns(page, is_dark, "dark is dark");
  await page.locator(".thinking summary").first().click();
  await readable(page, "dark");
  await becomes(page, lines, ([, times]) => times[0] + times[1] > 50, "charts follow the theme");

  // As the system has it, also when that changes.
  await page.selectOption("select", "auto");
  for (const [colorScheme, is_right] of [["dark", is_dark], ["light", is_light]]) {
    await page.emulateMedia({ colorScheme });
    await back_turns(page, is_right, `a ${colorScheme} system`);
    await readable(page, `auto, ${colorScheme}`);
  }
  await page.evaluate(() => localStorage.clear());

  // A reply that would go on for long is stopped by button and by key, and its thought by its button. Requests pass
  // through here so that they never end by themselves.
  let more = { ignore_eos: true, max_tokens: 7000, temperature: 1, seed: 3 };
  await page.route("**/v1/chat/completions", (route) =>
    route.continue({ postData: JSON.stringify({ ...JSON.parse(route.request().postData()), ...more }) }),
  );
  const running = async () => (await (await fetch(`${address}/props`)).json()).requests.running;
  const stopped = async (what) => {
    await ended(page);
    for (let i = 0; i < 100 && (await running()) > 0; ++i) await page.waitForTimeout(20);
    assert.equal(await running(), 0, `${what} stops the engine`);
    assert.equal(await page.locator(".assistant .note").last().innerText(), "stopped", what);
  };
  await page.uncheck(".check:has-text('Thinking') input");
  for (const stop of ["Stop", "Escape"]) {
    await page.click("text=New talk");
    await say(page, "Tell me a long story with a mouse.");
    await page.waitForFunction(() => document.querySelector(".assistant .speech")?.textContent.length > 20);
    assert.equal(await running(), 1);
    if (stop === "Stop") await press(page, "Stop");
    else await page.press("#message", "Escape");
    await stopped(stop);
    assert.ok((await speech.innerText()).length > 20, "what was said stays");
  }
  // Thoughts are shown while they come and can be ended: what ends one is made unlikely, so that only the button does.
  const ends = ["<channel|>", "<|tool_call>", "<|tool_response>", "<turn|>", "<|turn>"];
  const ids = await Promise.all(
    ends.map(async (content) => (await (await fetch(`${address}/tokenize`, { method: "POST", body: JSON.stringify({ content }) })).json()).tokens[0]),
  );
  more = { ...more, temperature: 0, logit_bias: Object.fromEntries(ids.map((id) => [id, -60])) };
  await page.check(".check:has-text('Thinking') input");
  await page.click("text=New talk");
  await say(page, "What is 12 plus 30?");
  await page.waitForSelector('button:text-is("End thinking")');
  assert.equal(await speech.innerText(), "", "it only thinks");
  await page.waitForFunction(() => document.querySelector(".thinking > div")?.textContent.length > 20);
  assert.ok(await thought_is_open(), "the thought is open while it comes");
  assert.ok(await page.locator(".thinking > div").first().isVisible(), "and can be seen");
  await picture(page, "thinking");
  await press(page, "End thinking");
  await page.waitForFunction(() => document.querySelector(".assistant .speech")?.textContent.length > 5);
  assert.equal(await page.locator('button:text-is("End thinking")').count(), 0, "it has ended");
  assert.equal(await thought_is_open(), false, "and is folded");
  await press(page, "Stop");
  await stopped("Stop after a thought");
  await page.unroute("**/v1/chat/completions");

  // A call is shown, wants a result, and the talk goes on with it.
  const look_at = {
    name: "look_at",
    description: "Turn the head of the robot to a direction.",
    parameters: {
      type: "object",
      properties: { direction: { type: "string", description: "Where to look.", enum: ["left", "right", "up", "down", "front"] } },
      required: ["direction"],
    },
  };
  await page.uncheck(".check:has-text('Thinking') input");
  await page.check(".check:has-text('Drafting') input");
  await page.fill(".field:has-text('System message') textarea", "You are Robi, an expressive tabletop companion robot.");
  await page.fill(".field:has-text('Tools') textarea", JSON.stringify([{ type: "function", function: look_at }]));
  await page.click("text=New talk");
  await say(page, "Please look left.");
  await page.waitForSelector(".tool");
  await page.waitForSelector("button:has-text('Send the tools')");
  assert.match(await page.locator(".tool").first().innerText(), /look_at[\s\S]*left/, "the call and its arguments");
  await picture(page, "tools");
  await page.locator(".tool input, .tool textarea").first().fill('{"ok": true}');
  await page.click("button:has-text('Send the tools')");
  await ended(page);
  await page.waitForFunction(() => document.querySelectorAll(".assistant").length === 2);
  await page.fill(".field:has-text('Tools') textarea", "");

  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input, select, textarea")]
      .filter((e) => !(e.labels?.length > 0 || e.ariaLabel || e.textContent.trim() || e.title))
      .map((e) => e.outerHTML),
  );
  assert.deepEqual(nameless, [], "every control has a name");
  await page.focus("body");
  const reached = new Set();
  for (let i = 0; i < 40; ++i) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.tagName));
  }
  for (const tag of ["BUTTON", "TEXTAREA", "INPUT", "SELECT"]) {
    assert.ok(reached.has(tag), `${tag} is reached by the keyboard alone`);
  }

  await page.fill(".field:has-text('Longest reply') input", "many");
  await say(page, "Hello");
  assert.match(await page.locator(".talk > .problem").innerText(), /must be a number/, "a wrong setting is a sentence");

  await page.setViewportSize({ width: 420, height: 800 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "no sideways scrolling on a phone");
  await picture(page, "phone");

  // A server that does not draft is talked to all the same.
  const plain = await start_server("--draft-max", "0");
  try {
    const other = await context.newPage();
    other.on("pageerror", (error) => problems.push(error.message));
    await other.goto(`${plain.address}/`);
    await other.waitForSelector(".subtitle:has-text('no drafting')");
    await other.click("summary:has-text('Settings')");
    assert.ok(await other.isDisabled(".check:has-text('Drafting') input"), "drafting cannot be asked for");
    await other.uncheck(".check:has-text('Thinking') input");
    await say(other, "What is the capital of Finland?");
    await ended(other);
    assert.equal(await other.locator(".problem").count(), 0, "no problem is told");
    assert.match(await other.locator(".assistant .speech").innerText(), /\w/, "it answers");
  } finally {
    plain.server.kill("SIGTERM");
    await once(plain.server, "exit");
  }

  assert.deepEqual(foreign, [], "nothing is loaded from elsewhere");
  assert.deepEqual(problems, [], "no errors in the console");
  console.log("page: everything held");
} finally {
  await browser.close();
  server.kill("SIGTERM");
  await once(server, "exit");
}
