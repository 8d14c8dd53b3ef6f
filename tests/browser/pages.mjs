// Visits the dashboard with Chromium. What to do comes as JSON in the first argument; the first thing that is wrong ends it.
import assert from "node:assert/strict";
import { readFileSync, mkdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const told = JSON.parse(process.argv[2]);
const { chromium } = createRequire(join(told.playwright, "package.json"))(told.playwright);
const axe = readFileSync(told.axe, "utf8");
const ARGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--no-proxy-server", "--disable-extensions",
];
// A machine that builds at the same time is slow; nothing here is measured.
const PATIENCE = 120_000;
const SECRET = "mara.quillfeather@quayhaven.io";

const browser = await chromium.launch({ executablePath: told.chromium, args: ARGS, timeout: PATIENCE });

/** A page of its own profile that notes everything that must not happen. */
async function fresh(scheme, more = {}) {
  // Axe is put into the page, which its policy refuses: that policy is looked at by the server's own tests.
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width: 1280, height: 860 }, ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const wrong = [];
  page.on("console", (line) => { if (["error", "warning"].includes(line.type())) wrong.push(`console: ${line.text()}`); });
  page.on("pageerror", (error) => wrong.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(`${told.base}/`)) wrong.push(`request to ${request.url()}`); });
  const visit = async (path, status = 200) => {
    const reply = await page.goto(told.base + path, { waitUntil: "load", timeout: PATIENCE });
    assert.equal(reply.status(), status, path);
    // Chromium notes every answer that is no success; here it is meant.
    const unmeant = wrong.filter((one) => status === 200 || !one.includes(`status of ${status}`));
    assert.deepEqual(unmeant, [], `${path} (${scheme})`);
    wrong.length = 0;
    return page;
  };
  return { page, context, visit, wrong };
}

/** Axe without serious or critical findings. */
async function accessible(page, what) {
  // From the protocol, not from the page: its policy allows no inline script, and none is needed.
  const session = await page.context().newCDPSession(page);
  const run = async (expression) => {
    const done = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    assert.ok(!done.exceptionDetails, JSON.stringify(done.exceptionDetails));
    return done.result.value;
  };
  await run(axe + ";0");
  const found = await run(
    `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
      .filter((one) => ["serious", "critical"].includes(one.impact))
      .map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + " | " + node.failureSummary).join(" || ")))`,
  );
  await session.detach();
  assert.deepEqual(found, [], `axe on ${what}`);
}

async function picture(page, name, clip) {
  if (!told.bless) return;
  mkdirSync(told.images, { recursive: true });
  const path = join(told.images, `${name}.png`);
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path, clip: { x: 0, y: 0, width: 1280, height: clip }, fullPage: true, timeout: PATIENCE });
  assert.ok(statSync(path).size < 300 * 1024, `${path} is too large`);
}

const steps = {
  /** Nothing has come yet: what to do next stands there, with the real address. */
  async empty() {
    const { page, visit, context } = await fresh("light");
    for (const path of ["/", "/traces"]) {
      await visit(path);
      const text = await page.textContent("main");
      assert.ok(text.includes(`OTEL_EXPORTER_OTLP_ENDPOINT=http://${told.http}`), text);
    }
    await accessible(page, "no traces");
    for (const path of ["/sessions", "/failures", "/rules", "/judge", "/system"]) await visit(path);
    await context.close();
  },

  async pages() {
    await everyPage("light");
    await everyPage("dark");
    await filters();
    await evidence();
    await hostile();
    await rules();
    await keyboard();
    await withoutScripts();
  },

  /** With a key set a page leads to where one signs in, and back. */
  async signing() {
    const { page, visit, context, wrong } = await fresh("light");
    await visit("/traces?verdict=fail");
    assert.ok(page.url().includes("/sign-in?next="), page.url());
    await accessible(page, "sign in");
    await page.fill("input[name=key]", "wrong");
    await page.click("main button");
    assert.ok((await page.textContent("[role=alert]")).includes("not valid"));
    wrong.length = 0;
    await page.fill("input[name=key]", told.key);
    await page.click("main button");
    await page.waitForURL(`${told.base}/traces?verdict=fail`);
    const [cookie] = await context.cookies();
    assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/"]);
    assert.equal(cookie.name, `iris_session_${new URL(told.base).port}`);
    assert.equal(await page.evaluate(() => document.cookie), "");
    assert.equal((await context.request.get(`${told.base}/api/v1/traces`)).status(), 401, "the cookie opens pages alone");
    await page.click("text=Sign out");
    await page.waitForURL(/sign-in/);
    await visit("/");
    assert.ok(page.url().includes("/sign-in"), "signed out");
    await context.close();
  },
};

async function everyPage(scheme) {
  const { page, visit, context } = await fresh(scheme);
  const pages = {
    "/": ["overview", 1330], "/traces": ["traces", 900], [`/traces/${told.traces.plain}`]: ["trace", 1330], "/sessions": [], "/failures": [],
    "/rules": ["rules", 1000], "/judge": [], "/system": [],
  };
  for (const [path, [name, height]] of Object.entries(pages)) {
    await visit(path);
    await accessible(page, `${path} (${scheme})`);
    if (name && scheme === "light") await picture(page, name, height);
    if (name === "overview" && scheme === "dark") await picture(page, "overview-dark", height);
  }
  await context.close();
}

/** Filters find what they name, and their addresses can be kept. */
async function filters() {
  const { page, visit, context } = await fresh("light");
  await visit("/traces");
  await page.selectOption("select[name=verdict]", "fail");
  await page.fill("input[name=q]", "berth 14");
  await page.click("text=Find");
  await page.waitForURL(/verdict=fail/);
  const address = page.url().slice(told.base.length);
  assert.ok((await page.textContent("table")).includes("harbour-guide"));
  assert.equal(await page.locator("tbody tr .badge.pass").count(), 0);
  await visit(address);
  assert.equal(await page.inputValue("input[name=q]"), "berth 14");
  await visit("/traces?limit=5");
  const first = await page.locator("tbody a.cover").first().getAttribute("href");
  await page.click("a[rel=next]");
  await page.waitForURL(/offset=5/);
  assert.notEqual(await page.locator("tbody a.cover").first().getAttribute("href"), first);
  for (const path of [
    "/traces?agent_name=harbour-guide&sort_by=latency_ms&sort_order=asc", "/traces?rule=no_pii", "/traces?min_score=0.5&max_score=1",
    "/traces?since=2001-01-01&until=2099-01-01", "/traces?session_id=visitor-1", `/traces?trace_id=${told.traces.plain}`, "/traces?framework=none",
    "/?period=7d&step=hour&by=model", "/?period=1y&by=version", "/?agent=harbour-guide&by=provider", "/sessions?period=30d", "/failures?kind=safety-violation",
  ]) await visit(path);
  await visit("/traces?since=yesterday", 400);
  assert.ok((await page.textContent("main")).includes("What helps"));
  await context.close();
}

/** What a rule saw is marked at the right characters: what is marked is what a person reads. */
async function evidence() {
  const { page, visit, context } = await fresh("light");
  for (const name of ["plain", "emoji", "rtl"]) {
    await visit(`/traces/${told.traces[name]}`);
    const note = await page.locator("li[id^=note-]", { has: page.locator("bdi", { hasText: /^email$/ }) }).first().getAttribute("id");
    const number = note.replace("note-", "");
    const marked = await page.locator(`[data-text=Output] mark[data-notes~="${number}"]`).allTextContents();
    assert.equal(marked.join(""), SECRET, name);
    assert.equal(await page.locator(`[data-text=Output] sup a[href="#${note}"]`).count(), 1, name);
  }
  const box = await page.locator("[data-text=Output]").evaluate((one) => getComputedStyle(one).direction);
  assert.equal(box, "rtl", "a text that begins from the right runs from the right");
  await visit(`/traces/${told.traces.plain}`);
  await page.click(".waterfall tbody tr:nth-child(2) a");
  await page.waitForURL(/span=/);
  assert.ok((await page.textContent("#span")).includes("openinference.span.kind"));
  assert.ok((await page.textContent("#call-1")).includes("TimeoutError"));
  await context.close();
}

/** Markup, scripts and characters that turn the line around do nothing anywhere. */
async function hostile() {
  const { page, visit, context } = await fresh("light");
  for (const path of [
    "/", "/?by=version", "/traces", `/traces/${told.traces.hostile}`, "/sessions", "/failures", "/traces?q=%3Cscript%3Ealert(9)%3C%2Fscript%3E%20x",
    "/?agent=%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(9)%3E", "/rules?source=%22%3E%3Cscript%3Ealert(9)%3C%2Fscript%3E",
  ]) {
    await visit(path);
    assert.equal(await page.locator("main script, main img, main iframe, main style, main [style], main [onerror]").count(), 0, path);
    assert.ok(!(await page.content()).includes("\u202e"), path);
    const away = await page.locator("main a").evaluateAll((all) => all.map((one) => one.href).filter((href) => !href.startsWith(location.origin)));
    assert.deepEqual(away, [], path);
  }
  await visit(`/traces/${told.traces.hostile}`);
  assert.equal(await page.textContent("h1"), "<script>alert(1)</script>");
  assert.ok((await page.textContent("[data-text=Output]")).includes("[U+202E]evil[U+2066]"));
  await context.close();
}

/** A rule is tried, deployed, paused and removed. */
async function rules() {
  const { page, visit, context, wrong } = await fresh("light");
  await visit("/rules");
  await page.fill("input[name=name]", "no-berths");
  await page.selectOption("#rule-type", "excludes_keywords");
  assert.equal(await page.isVisible("input[name=pattern]"), false, "only what the type asks for is shown");
  await page.fill("textarea[name=keywords]", "berth 22\nberth 23");
  await page.click("text=Try on stored traces");
  await page.waitForSelector("#tried");
  await accessible(page, "a rule that was tried");
  assert.equal(await page.inputValue("input[name=name]"), "no-berths", "what was entered stays");
  await page.click("button:text-is('Deploy')");
  await page.waitForURL(/done=deployed/);
  assert.ok((await page.textContent("tr:has-text('no-berths')")).includes("in force"));
  await page.click("tr:has-text('no-berths') button:has-text('Pause')");
  await page.waitForURL(/done=paused/);
  assert.ok((await page.textContent("tr:has-text('no-berths')")).includes("paused"));
  await accessible(page, "a rule that is paused");
  await page.fill("input[name=name]", "no-berths");
  await page.selectOption("#rule-type", "regex_no_match");
  await page.fill("input[name=pattern]", "(?=x)");
  await page.click("button:text-is('Deploy')");
  await page.waitForSelector("[role=alert]");
  wrong.length = 0;
  await page.click("tr:has-text('no-berths') summary");
  await page.click("tr:has-text('no-berths') button:has-text('Delete for good')");
  await page.waitForURL(/done=deleted/);
  assert.equal(await page.locator("tr:has-text('no-berths')").count(), 0);
  await context.close();
}

/** The keyboard alone reaches the content and a trace. */
async function keyboard() {
  const { page, visit, context } = await fresh("light");
  await visit("/traces");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  const link = page.locator("tbody a.cover").first();
  await link.focus();
  const outline = await link.evaluate((one) => getComputedStyle(one).outlineStyle);
  assert.notEqual(outline, "none", "one sees where one is");
  await page.keyboard.press("Enter");
  await page.waitForURL(/traces\/[0-9a-f]{32}/);
  await context.close();
}

/** Without scripts everything is there; with them new figures come by themselves, unless that is turned off. */
async function withoutScripts() {
  const without = await fresh("light", { javaScriptEnabled: false });
  await without.visit("/");
  assert.ok(await without.page.isVisible("svg.chart >> nth=0"));
  assert.equal(await without.page.isVisible("#live"), false);
  await without.page.click("summary >> nth=0");
  await without.context.close();
  const { page, visit, context, wrong } = await fresh("light");
  await visit("/traces");
  await page.evaluate(() => { document.querySelector("main h1").textContent = "stale"; });
  await page.waitForFunction(() => document.querySelector("main h1").textContent === "Traces", null, { timeout: PATIENCE });
  await page.click("#live");
  assert.equal(await page.getAttribute("#live", "aria-pressed"), "false");
  assert.deepEqual(wrong, []);
  await context.close();
}

try {
  await steps[told.what]();
} finally {
  await browser.close();
}
