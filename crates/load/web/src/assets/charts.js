// Charts of the page: those of the saved report, with lines that grow.

const AXIS_X = { name: "since the start", unit: "s", scale: "linear" };

class RunChart extends LiveChart {
  /// Figure and chart; `choose` is called with a range of seconds, or null.
  static make(title, note, y, lines, peers, choose) {
    return this.grow(document.getElementById("plots"), { title, note, axes: [{ ...AXIS_X }, y], lines }, peers, choose);
  }

  /// Takes new points from the start of the run to `end`.
  update(values, end, extra) {
    this.show(values, [0, Math.max(end, 1)], extra);
  }
}

const PER_SECOND = { name: "requests per second", unit: "per_s", scale: "linear" };
const CLASSES = [["2xx", "3", 200], ["3xx", "0", 300], ["4xx", "5", 400], ["5xx", "bad", 500], ["other", "4", null], ["no response", "8", undefined]];

/// All charts, and a function that gives them the bins of a store.
function makeCharts({ kind, reads_events }, choose) {
  const peers = [];
  const isOpen = kind === "rate" || kind === "log";
  const make = (title, note, y, lines) => RunChart.make(title, note, y, lines, peers, choose);
  const level = kind === "rate" ? [{ name: "set", hue: 2 }] : [];
  const rate = make("Throughput", "Requests by end time.", { ...PER_SECOND },
    [{ name: "ok", hue: 0 }, { name: "failed", hue: "bad" }, ...level]);
  const times = make("Response time", "Of successes, from the intended start.", { name: "response time", unit: "ms", scale: "log" },
    [{ name: "p50", hue: 0 }, { name: "p95", hue: 3 }, { name: "p99", hue: 1 }, { name: "max", hue: 2 }]);
  const heat = HeatChart.make("Heat map of response times", "Darker: more requests.", { name: "response time", unit: "ms", scale: "log" },
    [{ name: "p50", hue: 8 }, { name: "p99", hue: 1 }], peers, choose);
  const status = make("Outcomes", "Responses by status, stacked.", { ...PER_SECOND }, CLASSES.map(([name, hue]) => ({ name, hue })));
  const users = isOpen ? [{ name: "waiting for a connection", hue: 1 }] : [{ name: kind, hue: 2 }];
  const inside = make("In the system", "The maximum of each interval.", { name: "requests", unit: "count", scale: "linear" },
    [{ name: "in flight", hue: 0 }, ...users]);
  const streams = reads_events ? make("Streams", "Of streamed responses.", { name: "time", unit: "ms", scale: "log" },
    [{ name: "first event p50", hue: 0 }, { name: "first event p99", hue: 1 }, { name: "gap p50", hue: 3 }, { name: "gap p99", hue: 5 }]) : null;
  const gaps = reads_events ? HeatChart.make("Heat map of gaps", "Between two events of a response; darker: more gaps.", { name: "gap", unit: "ms", scale: "log" },
    [{ name: "p50", hue: 8 }, { name: "p99", hue: 1 }], peers, choose) : null;
  const cpu = make("CPU of weir", "Of the threads that generate the load.", { name: "cores", unit: "count", scale: "linear" }, [{ name: "cores", hue: 7 }]);
  const events = reads_events ? make("Events", "Of streamed responses, by arrival time.", { ...PER_SECOND, name: "events per second" },
    [{ name: "events", hue: 0 }]) : null;
  // A script may open its first WebSocket at any time.
  let held = null, upgrades = null;
  const update = (store, load, hello) => {
    const { bins } = store, xs = bins.map((bin) => store.start(bin) + store.seconds(bin) / 2);
    const end = bins.length ? store.start(bins[bins.length - 1]) + store.seconds(bins[bins.length - 1]) : 1;
    const per = (of) => bins.map((bin) => store.rate(of(bin), bin));
    const line = (y, more) => ({ xs, y, ...more });
    const happened = (load?.marks ?? []).map(([at, isBad, word]) => [at, word, isBad ? "bad" : "good"]);
    const marks = [...marksOf(load?.changes ?? [], kind), ...happened].sort((a, b) => a[0] - b[0]);
    const spans = hello.warmup_s > 0 ? [[0, hello.warmup_s, "warm-up"]] : [];
    const stages = stepsOf(load?.stages ?? [], end);
    rate.update([line(per((bin) => bin.ok)), line(per((bin) => bin.failed)), ...(kind === "rate" ? [stages] : [])], end,
      { marks, spans, levels: hello.rate_objectives });
    times.update([0, 1, 2, 3].map((i) => line(bins.map((bin) => store.rate(1, bin) === null ? null : bin.q[i]))), end, { marks, spans, levels: hello.time_objectives });
    heat.updateHeat(bins, RESPONSE_TIMES, store, end, { marks, spans });
    gaps?.updateHeat(bins, EVENT_GAPS, store, end, { marks, spans });
    cpu.update([line(per((bin) => bin.cpu / 1e9))], end, { marks, spans });
    status.update(stacked(bins, store).map((one) => line(one.y, one)), end, { marks, spans });
    streams?.update([0, 1, 2, 3].map((i) => line(bins.map((bin) => bin.s?.[i] ?? null))), end, { marks, spans });
    events?.update([line(per((bin) => bin.streams?.events ?? 0))], end, { marks, spans });
    if (!held && bins.some((bin) => bin.websocket)) {
      held = make("Connections held", "WebSockets, at the end of each interval.", { name: "connections", unit: "count", scale: "linear" }, [{ name: "held", hue: 0 }]);
      upgrades = make("Upgrades", "WebSockets that were opened.", { ...PER_SECOND, name: "connections per second" }, [{ name: "upgraded", hue: 2 }]);
    }
    // At the end of the load all are closed.
    held?.update([line(bins.map((bin, i) => i + 1 === bins.length && !bin.websocket?.held ? null : bin.websocket?.held ?? null))], end, { marks, spans });
    upgrades?.update([line(per((bin) => bin.websocket?.upgraded ?? 0))], end, { marks, spans });
    const second = isOpen ? line(bins.map((bin) => bin.backlog)) : stages;
    inside.update([line(bins.map((bin) => bin.max_in_flight)), second], end, { marks, spans });
  };
  return { update, redraw: () => peers.forEach((chart) => { chart.size = chart.colour = null; chart.draw(); }), view: () => rate.view };
}

/// Levels of stages as points: two at each step.
function stepsOf(stages, end) {
  const xs = [], y = [];
  let at = 0;
  for (const [from, to, length] of stages) {
    if (at > end) break;
    const part = Math.min(1, (end - at) / length);
    xs.push(at, at + length * part);
    y.push(from, from + (to - from) * part);
    at += length;
  }
  return { xs, y };
}

/// Marks of changes: those that follow each other within a moment are one.
function marksOf(changes, kind) {
  const words = ([, name, level]) => name === "rate" ? `${units.per_s.show(level)}` : name === "users" ? `${level} ${kind}` : name;
  return changes.filter(([at], i) => i + 1 === changes.length || changes[i + 1][0] - at > 0.5).map((one) => [one[0], words(one)]);
}

/// Number of requests in each class of outcomes.
function classesOf(bin) {
  const classes = CLASSES.map(() => 0), other = CLASSES.findIndex(([, , from]) => from === null), none = other + 1;
  for (const [status, n] of Object.entries(bin.status)) {
    // A status of gRPC is a name: OK is as 2xx, and the others are as 5xx.
    const at = Number(status) ? Math.floor(status / 100) - 2 : status === "OK" ? 0 : 3;
    classes[at >= 0 && at < other ? at : other] += n;
  }
  for (const n of Object.values(bin.failures)) classes[none] += n;
  return classes;
}

/// Outcomes per second, each on top of those before.
function stacked(bins, store) {
  let below = bins.map(() => 0);
  return CLASSES.map((_, k) => {
    const own = bins.map((bin) => store.rate(bin.classes[k], bin));
    const low = below, any = own.some((v) => v > 0);
    below = own.map((v, i) => v === null ? null : v + low[i]);
    return { y: any ? below : bins.map(() => null), low: any ? low : undefined, high: any ? below : undefined, own };
  });
}
