// The page: asks for the state of the gateway each second, and shows it.

const INTERVAL_MS = 1000, TIMEOUT_MS = 5000, MAX_EVENTS = 50;
const page = { history: new History(), charts: null, actions: null, events: [], lostSince: null, version: null };
const nowS = () => Date.now() / 1e3;

function announce(words) {
  if (byId("news").textContent !== words) byId("news").textContent = words;
}

/// Notes something that has happened while the page was open; `mark` is its word on the charts.
function note(x, words, tone, mark) {
  page.events.unshift([x, words, tone]);
  page.events.length = Math.min(page.events.length, MAX_EVENTS);
  if (mark) page.history.mark(x, mark, tone);
  announce(words);
}

/// Notes what is another thing in a state than in the one before.
function noteChanges(before, state, x) {
  if (before.draining !== state.draining) note(x, state.draining ? "The gateway drains" : "The gateway is ready", state.draining ? "doubt" : "good", state.draining ? "draining" : "ready");
  const upstreams = new Map(before.upstreams.map((one) => [one.name, one]));
  for (const one of state.upstreams) {
    const old = upstreams.get(one.name);
    if (!old) continue;
    if (old.circuit !== one.circuit) note(x, `${one.name}: circuit ${one.circuit ?? "none"}`, one.circuit === "open" ? "bad" : "good", one.circuit === "open" ? "circuit open" : "");
    if (old.panicking !== one.panicking) note(x, `${one.name}: ${one.panicking ? "so few hosts are healthy that all get attempts" : "enough hosts are healthy again"}`, one.panicking ? "bad" : "good", "");
    const hosts = new Map(old.hosts.map((host) => [host.host, host]));
    for (const { host, condition } of one.hosts) {
      const was = hosts.get(host)?.condition;
      hosts.delete(host);
      if (was === condition) continue;
      const [words, tone] = was === undefined ? ["new", "good"] : CONDITIONS[condition] ?? [condition, ""];
      note(x, `${one.name}: ${host} ${words}`, tone, tone === "bad" ? "host out" : "");
    }
    for (const host of hosts.keys()) note(x, `${one.name}: ${host} gone`, "doubt", "");
  }
}

function take(state) {
  const { history } = page, x = nowS(), before = history.state;
  if (page.lostSince !== null) {
    note(x, `Reachable again after ${units.s.show(Math.round(x - page.lostSince))}`, "good", "");
    page.lostSince = null;
  }
  const { isNew, isRestart } = history.take(state, x);
  if (isRestart) note(x, "The gateway was started anew: its counters begin at 0", "bad", "");
  else if (isNew && before) noteChanges(before, state, x);
  page.version ??= state.version;
  byId("version").hidden = state.version === page.version;
}

function lost() {
  const x = nowS();
  page.history.lost(x);
  if (page.lostSince === null) {
    page.lostSince = x;
    note(x, "The gateway is not reachable", "bad", "not reachable");
  }
}

function render() {
  const { history, lostSince } = page, now = nowS();
  document.body.classList.toggle("stale", lostSince !== null);
  byId("state").classList.toggle("lost", lostSince !== null);
  byId("state").classList.toggle("draining", Boolean(history.state?.draining));
  const last = history.last();
  const words = lostSince !== null ? `not reachable since ${clockTime(lostSince)}; asked again each second`
    : !last ? "connecting" : `${history.state.draining ? "draining: not ready" : "serving"} \u00b7 as of ${clockTime(last.x)}`;
  setText(byId("state"), words);
  document.title = `${lostSince !== null ? "not reachable \u00b7 " : history.state?.draining ? "draining \u00b7 " : ""}${location.host} \u00b7 weir gate`;
  if (!last) return;
  byId("live").hidden = false;
  showFigures(history);
  page.charts.update(history, now);
  // While it is not reachable nothing can be changed.
  showTables(history, now, mayChange && lostSince === null ? (...chosen) => page.actions.ask(...chosen) : null);
  page.actions.show(history.state);
  byId("drain").disabled = lostSince !== null;
  fillTable("events", page.events.map(([at, sentence, tone], i) => [String(page.events.length - i), [text(clockTime(at)), text(sentence, tone)]]));
}

async function ask() {
  try {
    const response = await fetch("live.json", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    take(await response.json());
  } catch {
    lost();
  }
  render();
}

/// One question at a time; the next a second after the last began.
async function follow() {
  for (;;) {
    const began = performance.now();
    await ask();
    await new Promise((done) => setTimeout(done, Math.max(0, INTERVAL_MS - (performance.now() - began))));
  }
}

page.charts = new Charts();
page.actions = new Actions(ask);
setText(byId("title"), `Gateway ${location.host}`);
addEventListener("beforeprint", () => page.charts.redraw());
follow();

export { History, keyOf, page, quantileOf };
import { LiveChart, element, shape, units } from "./charts.js";
