// The page: what events say, shown.

const byId = (id) => document.getElementById(id);
const page = { store: null, hello: null, load: null, charts: null, controls: null, isOver: false, isLost: false };
let isDue = false;

/// Forgets a run that another one follows.
function forgetRun() {
  byId("plots").replaceChildren();
  byId("end").hidden = true;
  page.controls?.end();
  Object.assign(page, { store: null, hello: null, load: null, charts: null, isOver: false, isLost: false });
}

/// Draws once per frame, whatever has come.
function draw() {
  if (isDue || !page.store) return;
  isDue = true;
  requestAnimationFrame(() => { isDue = false; if (page.store) render(); });
}

function render() {
  page.charts.update(page.store, page.load, page.hello);
  showFigures();
  showState();
}

function showFigures() {
  const range = page.charts.view(), all = page.store.figures(range);
  const none = "\u2013", time = (v) => v === null ? none : units.ms.show(v);
  const per = (n) => all.seconds ? units.per_s.show(n / all.seconds) : none;
  const ended = all.ok + all.failed;
  const figures = [["requests", units.count.show(ended), per(ended)], ["failed", units.count.show(all.failed), ended ? units.fraction.show(all.failed / ended) : ""],
    ["mean", time(all.mean)], ["p50", time(all.p50)], ["p95", time(all.p95)], ["p99", time(all.p99)], ["max", time(all.max)],
    ["in flight", units.count.show(all.inFlight), all.backlog ? `${units.count.show(all.backlog)} waiting` : ""], ["read", units.bytes.show(all.bytes), all.seconds ? `${units.bytes.show(all.bytes / all.seconds)}/s` : ""]];
  if (all.iterations) figures.splice(1, 0, ["iterations", units.count.show(all.iterations), per(all.iterations)]);
  if (all.streams) {
    const { events, tokens, first, gaps } = all.streams;
    figures.push(["events", units.count.show(events), per(events)], ["first event", time(first[0]), `p99 ${time(first[1])}`], ["gap", time(gaps[0]), `p99 ${time(gaps[1])}`]);
    if (tokens) figures.push(["tokens", units.count.show(tokens), per(tokens)]);
  }
  if (all.websocket) {
    const { held, upgraded } = all.websocket;
    figures.push(["held connections", units.count.show(held), ""], ["upgraded", units.count.show(upgraded), per(upgraded)]);
  }
  figures.forEach(([name, value, note], i) => {
    const figure = byId("figures").children[i] ?? byId("figures").appendChild(element("div", {}, element("dt"), element("dd", {}, element("data"), element("span"))));
    figure.dataset.name = name;
    figure.className = name === "failed" && all.failed ? "bad" : "";
    setText(figure.firstChild, name);
    setText(figure.lastChild.firstChild, value);
    setText(figure.lastChild.lastChild, note ?? "");
  });
  while (byId("figures").children.length > figures.length) byId("figures").lastChild.remove();
  const words = range ? `Chosen: ${units.s.show(all.from)} to ${units.s.show(all.to)}, ${units.s.show(all.seconds)}.` : "The whole run so far.";
  if (byId("range").textContent !== words) byId("range").textContent = words;
  fill("steps", page.hello.steps.map((name, i) => {
    const [requests, failed, checks, sum] = [0, 1, 2, 3].map((k) => all.steps[FIGURES_OF_A_STEP * i + k] ?? 0);
    return [name, units.count.show(requests), per(requests), units.count.show(failed), units.count.show(checks), requests ? time(sum / requests / 1e6) : none];
  }));
  const failedOf = ([status, n]) => [status, n - (all.accepted[status] ?? 0)];
  const statuses = Object.entries(all.status).filter(([status]) => Number(status) ? status >= 400 : status !== "OK").map(failedOf).filter(([, n]) => n > 0);
  const failures = [...statuses, ...Object.entries(all.failures)];
  fill("failures", failures.sort((a, b) => b[1] - a[1]).map(([kind, n]) => [kind, units.count.show(n), units.fraction.show(n / ended), page.store.details[kind] ?? ""]), 1);
}

/// Text of an element, written only if it is another: the layout of what stays is not done again.
function setText(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

/// Rows of a table, in place of those before; the first cell is a heading, the others are numbers but for the last
/// `words` ones.
function fill(id, rows, words = 0) {
  byId(`${id}-section`).hidden = !rows.length;
  const body = byId(id).tBodies[0];
  rows.forEach((row, r) => {
    const line = body.rows[r] ?? body.appendChild(element("tr", {}, ...row.map((_, i) => element(i ? "td" : "th", i === 0 ? { scope: "row" } : i < row.length - words ? { class: "n" } : {}))));
    row.forEach((text, i) => setText(line.cells[i], text));
  });
  while (body.rows.length > rows.length) body.lastChild.remove();
}

/// What generates the load: this process, or agents.
function showParts({ parts }) {
  const isOwn = parts.length === 1 && !parts[0].node;
  setText(byId("parts-heading"), isOwn ? "Load generator" : "Agents");
  const ms = (v) => v === null ? "\u2013" : units.ms.show(v);
  fill("parts", parts.map((part, i) => [isOwn ? "weir" : `${i + 1} on ${part.node}`, units.count.show(part.threads), units.per_s.show(part.rate), units.count.show(part.requests),
    ms(part.late_ms[0]), ms(part.late_ms[1]), units.fraction.show(part.cpu), isOwn ? "\u2013" : ms(part.offset_ms), isOwn ? "\u2013" : `\u00b1${ms(part.clock_ms)}`, part.doubt ?? "good"]), 1);
  parts.forEach((part, i) => byId("parts").tBodies[0].rows[i].classList.toggle("bad", Boolean(part.doubt)));
}

/// Checks and metrics that a script has measured itself, since the start.
function showScript({ checks, metrics }) {
  // A script has its checks beside the steps.
  byId("steps").classList.add("of-script");
  const shown = { milliseconds: units.ms, bytes: units.bytes };
  const text = (kind, unit, of, value) => of === "rate" ? (kind === "rate" ? units.fraction : units.per_s).show(value) : of === "count" && kind === "trend" ? units.count.show(value) : (shown[unit] ?? units.count).show(value);
  fill("checks", checks.map(([name, passed, failed]) => [name, units.count.show(passed), units.count.show(failed), units.fraction.show(passed / (passed + failed))]));
  checks.forEach(([, , failed], i) => byId("checks").tBodies[0].rows[i].classList.toggle("bad", failed > 0));
  fill("script", metrics.map(([name, kind, unit, values]) => [name, Object.entries(values).map(([of, value]) => `${of} ${text(kind, unit, of, value)}`).join(", ")]), 1);
}

function showState() {
  const { load, hello, isLost, isOver } = page;
  if (!load || isOver) return;
  const elapsed = load.elapsed_s ?? 0, left = load.until_s === null ? "" : ` of ${units.s.show(load.until_s)}`;
  const level = hello.kind === "log" ? "times of a log" : hello.kind === "rate" ? `${units.per_s.show(load.level)} set` : `${units.count.show(load.level)} ${hello.kind}`;
  const words = isLost ? "connection lost; trying again" : load.elapsed_s === null ? "starting"
    : `${units.s.show(Math.floor(elapsed))}${left} \u00b7 ${load.is_stopped ? "stopping" : load.is_paused ? "paused" : level}`;
  byId("state").textContent = words;
  // Read aloud: what has changed, and not the time.
  announce(isLost ? "connection lost" : load.is_stopped ? "stopping" : load.is_paused ? "paused" : level);
  byId("state").classList.toggle("lost", isLost);
  byId("progress").hidden = load.until_s === null;
  byId("progress").value = load.until_s ? Math.min(1, elapsed / load.until_s) : 0;
  showParts(load);
  if (load.script) showScript(load.script);
  fill("events", load.marks.map(([at, , , sentence]) => [units.s.show(at), sentence]), 1);
  load.marks.forEach(([, isBad], i) => byId("events").tBodies[0].rows[i].classList.toggle("bad", isBad));
  byId("changes-section").hidden = !load.changes.length;
  byId("changes").tBodies[0].replaceChildren(...load.changes.slice(-50).map(([at, name, value]) => element("tr", {},
    element("th", { scope: "row" }, units.s.show(at)), element("td", {}, name === "rate" ? `rate ${units.per_s.show(value)}` : name === "users" ? `${value} ${hello.kind}` : name))));
  byId("again-section").hidden = hello.kind === "log";
  byId("again").textContent = `--stages ${load.stages.map(([from, to, length]) => `${from === to ? "" : `${from}-`}${to}${hello.kind === "rate" ? "" : "u"}/${Number(length.toFixed(9))}s`).join(",")}`;
}

function announce(words) {
  if (byId("news").textContent !== words) byId("news").textContent = words;
}

/// Verdict at the end, and the report as a file: this process is gone by then.
function showEnd(end) {
  page.isOver = true;
  if (page.store && end.ended_s) page.store.end = end.ended_s;
  draw();
  page.controls?.end();
  byId("state").textContent = "over";
  announce(`The load is over. ${end.headline}`);
  byId("state").classList.remove("lost");
  byId("progress").hidden = true;
  const section = byId("end");
  section.className = `verdict ${end.tone}`;
  section.hidden = false;
  const points = end.points.map(({ tone, text }) => element("li", {}, element("span", { class: `mark ${tone}`, "aria-hidden": "true" }, { good: "\u2713", bad: "\u2717", doubt: "!" }[tone] ?? "\u00b7"), text));
  section.replaceChildren(element("h2", { id: "headline" }, end.headline), element("p", {}, end.sentence), element("ul", {}, ...points));
  if (end.report) {
    const href = URL.createObjectURL(new Blob([end.report], { type: "text/html" }));
    section.append(element("p", { class: "report" }, element("a", { href, download: "weir-report.html" }, "Save the report")));
  }
  if (end.stages) section.append(element("p", {}, "The same load without changes:"), element("pre", {}, `--stages ${end.stages}`));
}

addEventListener("beforeprint", () => page.charts?.redraw());
// The heat map has the colours of its time.
for (const where of [matchMedia("(prefers-color-scheme: dark)"), document.querySelector(".switch")]) where.addEventListener("change", () => page.charts?.redraw());
follow(() => page.store && page.store.next !== null ? `?since=${page.store.next}&run=${page.hello.run}` : "", {
  connected: () => { page.isLost = false; },
  rejected: (why) => { byId("state").textContent = why; byId("state").classList.add("lost"); },
  lost: () => { page.isLost = true; showState(); if (!page.load) byId("state").textContent = "weir is not reached; trying again"; },
  hello: (hello) => {
    if (page.hello?.run === hello.run) return;
    if (page.hello) forgetRun();
    page.hello = hello;
    document.title = `${hello.title} \u00b7 weir`;
    byId("title").textContent = hello.title;
    page.store = new Store(hello.max_bins, hello.interval_s);
    page.charts = makeCharts(hello, draw);
    if (hello.may_change) (page.controls ??= new Controls()).begin(hello.kind);
    page.onHello?.();
  },
  steps: (steps) => { page.hello.steps = steps; },
  bins: (bins) => { page.store.take(bins); draw(); },
  load: (load) => { page.load = load; page.controls?.show(load); draw(); showState(); },
  end: showEnd,
  run: (state) => page.onRun?.(state),
});

export { Store, authorization, byId, figureOf, forgetRun, page, reason, render };
import { BOTTOM, LiveChart, TOP, element, figureOf, scales, units } from "/charts.js";
