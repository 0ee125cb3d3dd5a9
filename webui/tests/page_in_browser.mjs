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

/** Starts the server on a free port and resolves to its address once it says that it listens. */
async function start_server() {
  const server = spawn(octet, [
    "serve",
    ...["-m", `${models}/bolt-tiny-q8_0.gguf`, "-md", `${models}/bolt-tiny-dflash-q8_0.gguf`],
    ...["--port", "0", "-t", "1"],
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

const { server, address } = await start_server();
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
  assert.ok((await page.locator(".live dd").nth(1).innerText()) > "1", "an acceptance length is shown");
  assert.ok((await page.locator(".bars li").count()) > 0, "acceptance by position is shown");
  assert.equal(await page.locator(".chart canvas").count(), 2, "charts are drawn");
  await picture(page, "light");

  await page.uncheck(".check:has-text('Drafting') input");
  await page.click("text=New talk");
  await say(page, "What is the capital of Finland?");
  await ended(page);
  assert.equal(await page.locator(".drafted").count(), 0, "no drafts where drafting is off");
  assert.match(await speech.innerText(), /Helsinki/, "the same answer without drafts");

  await page.check(".check:has-text('Thinking') input");
  await page.selectOption("select", "dark");
  await page.click("text=New talk");
  await say(page, "Tell me a long story with a mouse.");
  await ended(page);
  await picture(page, "dark");
  const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.notEqual(back, "rgb(247, 247, 245)", "dark is dark");

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

  assert.deepEqual(foreign, [], "nothing is loaded from elsewhere");
  assert.deepEqual(problems, [], "no errors in the console");
  console.log("page: everything held");
} finally {
  await browser.close();
  server.kill("SIGTERM");
  await once(server, "exit");
}
