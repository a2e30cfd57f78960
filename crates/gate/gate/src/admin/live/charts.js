// Charts and small lines of the page.

const twoDigits = (n) => String(n).padStart(2, "0");
const clockTime = (s) => { const at = new Date(s * 1e3); return `${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}:${twoDigits(at.getSeconds())}`; };
/// Times of the day, of the reader.
units.clock = { show: (s) => clockTime(s), tick: (s) => clockTime(s).replace(/:00$/, "") };

const PER_SECOND = { name: "per second", unit: "per_s", scale: "linear" }, COUNT = { name: "calls", unit: "count", scale: "linear" };

/// A chart of the last minutes.
class WindowChart extends LiveChart {
  static make(place, title, note, y, lines, peers) {
    return this.grow(place, { title, note, axes: [{ name: "time of the day", unit: "clock", scale: "linear" }, { ...y }], lines }, peers);
  }

  /// Takes the lines up to now. A range that was chosen stays until it has left the window.
  take(values, [from, now], marks) {
    const step = now - from > 150 ? 60 : now - from > 75 ? 30 : 15;
    this.x.marked = Array.from({ length: SPAN_S / step + 1 }, (_, i) => (Math.ceil(from / step) + i) * step).filter((s) => s <= now);
    if (this.view && this.view[0] < from) this.view = null;
    this.show(values, [from, now], { marks });
  }
}

const CALL_LINES = [["succeeded", "3"], ["failed", "bad"], ["deadline_exceeded", "1"], ["rejected", "4"], ["client_closed", "2"]];
const EXTRA_LINES = [["retried", "retries", "0"], ["hedged", "hedges", "5"], ["retries won", "retries won", "3"], ["hedges won", "hedges won", "7"]];
const wordsOf = (name) => name.replaceAll("_", " ");

class Charts {
  constructor() {
    const plots = byId("plots");
    this.peers = [];
    this.calls = WindowChart.make(plots, "Calls", "By outcome.", { ...PER_SECOND, name: "calls per second" },
      CALL_LINES.map(([name, hue]) => ({ name: wordsOf(name), hue })), this.peers);
    this.times = WindowChart.make(plots, "Response time", "To the head of the response, estimated from histogram buckets.", { name: "response time", unit: "ms", scale: "log" },
      [{ name: "p50", hue: 0 }, { name: "p99", hue: 1 }], this.peers);
    this.extra = WindowChart.make(plots, "Retries and hedges", "Extra attempts that were sent, and whose response was the call's.", { ...PER_SECOND, name: "attempts per second" },
      EXTRA_LINES.map(([, name, hue]) => ({ name, hue })), this.peers);
    this.limits = new Map();
  }

  update(history, now) {
    const { marks } = history, window = [history.from(now), now];
    this.calls.take(CALL_LINES.map(([name]) => history.rates("all", name)), window, marks);
    this.times.take([0.5, 0.99].map((q) => history.quantiles(q, "all")), window, marks);
    this.extra.take(EXTRA_LINES.map(([name]) => history.rates("all", name)), window, marks);
    const wanted = new Map(history.state.limits.map((limit) => [keyOf(...limitOf(limit)), limitOf(limit)]));
    for (const [key, chart] of this.limits) {
      if (wanted.has(key)) continue;
      chart.figure.remove();
      this.peers.splice(this.peers.indexOf(chart), 1);
      this.limits.delete(key);
    }
    for (const [key, [kind, name]] of wanted) {
      let chart = this.limits.get(key);
      if (!chart) {
        chart = WindowChart.make(byId("limit-plots"), `${kind} ${name}`, "Concurrency limit, occupied slots, and calls that wait for one.", COUNT,
          [{ name: "limit", hue: 2 }, { name: "in flight", hue: 0 }, { name: "queue", hue: 1 }], this.peers);
        // The number is that of the clip path, and charts come and go.
        chart.figure.dataset.chart = `limit-${Charts.made = (Charts.made ?? 0) + 1}`;
        this.limits.set(key, chart);
      }
      chart.take(["limit", "in_flight", "queue_length"].map((of) => history.levels(kind, name, of)), window, marks);
    }
    byId("limits-section").hidden = !wanted.size;
  }

  redraw() {
    this.peers.forEach((chart) => { chart.size = null; chart.draw(); });
  }
}

/// Path of a small line over the window, from 0 to its maximum.
function sparkPath({ xs, y }, [from, now]) {
  const most = y.reduce((most, v) => Math.max(most, v ?? 0), 0) || 1;
  let d = "", joined = false;
  for (let i = 0; i < xs.length; i++) {
    if (y[i] === null) { joined = false; continue; }
    const x = (xs[i] - from) / (now - from) * 100;
    if (x < 0) continue;
    d += `${joined ? "L" : "M"}${x.toFixed(1)} ${(19 - 18 * y[i] / most).toFixed(1)}`;
    if (!joined && (i + 1 === xs.length || y[i + 1] === null)) d += "h.1";
    joined = true;
  }
  return d;
}

function sparkline(hue) {
  const svg = shape("svg", { class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(shape("path", { class: `line h${hue}`, d: "" }));
  return svg;
}
