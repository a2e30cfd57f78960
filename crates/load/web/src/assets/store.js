// Intervals of the run in bounded memory. Neighbours are merged when there are too many, by the rule of live_store.rs.

const POINT_QUANTILES = [0.5, 0.95, 0.99, 1], STREAM_TIMES = ["first", "gaps"], FIGURES_OF_A_STEP = 4;

class Store {
  constructor(maxBins, interval) {
    Object.assign(this, { maxBins, interval, bins: [], shift: 1, next: null, end: Infinity, details: {}, whole: new Total(), part: new Total(), kept: null });
  }

  /// Takes bins from the server; `all`: they are all that there is.
  take({ all, next, bins }) {
    if (all) Object.assign(this, { bins: [], shift: 1, details: {}, whole: this.whole.clear() });
    for (const bin of bins) {
      // What the server has in lists of lists, in arrays of numbers: a day of it is some megabytes.
      bin.times = unpackTimes(bin.times);
      bin.steps = Float64Array.from(bin.steps.flat());
      delete bin.failed_times;
      if (bin.streams) for (const name of STREAM_TIMES) bin.streams[name] = unpackTimes(bin.streams[name]);
      // The first failure of a kind stands for all of them, also where only later ones are chosen.
      this.details = { ...bin.details, ...this.details };
      this.whole.add(bin);
      this.add(bin);
    }
    this.next = next;
    this.kept = null;
  }

  add(bin) {
    while (bin.w > this.shift || bin.n / this.shift >= this.maxBins) this.widen();
    const last = this.bins[this.bins.length - 1];
    if (last && this.place(last) === this.place(bin)) merge(last, bin);
    else this.bins.push(bin);
    summarize(this.bins[this.bins.length - 1]);
  }

  place(bin) { return Math.floor(bin.n / this.shift); }

  widen() {
    this.shift *= 2;
    const merged = [];
    for (const bin of this.bins) {
      const last = merged[merged.length - 1];
      if (last && this.place(last) === this.place(bin)) merge(last, bin); else merged.push(bin);
    }
    merged.forEach(summarize);
    this.bins = merged;
  }

  start(bin) { return bin.n * this.interval; }
  /// Length of a bin; the last one ends with the run.
  seconds(bin) { return Math.max(0, Math.min(bin.w * this.interval, this.end - this.start(bin))); }
  /// Number per second; none for a rest that is too short for a rate.
  rate(n, bin) {
    const seconds = this.seconds(bin);
    return seconds < bin.w * this.interval / 4 ? null : n / seconds;
  }

  /// Bins whose middle lies in a range of seconds; all without one.
  within(range) {
    if (!range) return this.bins;
    const middle = (bin) => this.start(bin) + this.seconds(bin) / 2;
    return this.bins.filter((bin) => middle(bin) >= range[0] && middle(bin) <= range[1]);
  }

  /// Figures of a range: sums, and percentiles of all its times. Those of the last call stay until there are new bins.
  figures(range) {
    const key = `${range} ${this.end}`;
    if (this.kept?.key !== key) this.kept = { key, figures: this.sumUp(range) };
    return this.kept.figures;
  }

  sumUp(range) {
    const bins = this.within(range), last = bins[bins.length - 1];
    const total = range ? bins.reduce((sum, bin) => sum.add(bin), this.part.clear()) : this.whole;
    const seconds = bins.reduce((sum, bin) => sum + this.seconds(bin), 0);
    const [from, to] = last ? [this.start(bins[0]), this.start(last) + this.seconds(last)] : [0, 0];
    return { ...total.figures(), seconds, from, to, inFlight: last?.in_flight ?? 0, backlog: last?.backlog ?? 0 };
  }
}

/// Sum of bins; that of the whole run grows with each, so that no drawing adds up a day.
class Total {
  constructor() {
    this.times = new TimeSum();
    this.ofStreams = Object.fromEntries(STREAM_TIMES.map((name) => [name, new TimeSum()]));
    this.clear();
  }

  clear() {
    this.counts = { ok: 0, failed: 0, bytes: 0, iterations: 0, cpu: 0, status: {}, accepted: {}, failures: {}, steps: new Float64Array(0) };
    this.streams = this.websocket = null;
    for (const sum of [this.times, ...Object.values(this.ofStreams)]) sum.clear();
    return this;
  }

  add(bin) {
    mergeCounts(this.counts, bin);
    this.times.add(bin.times);
    if (bin.websocket) this.websocket = { held: bin.websocket.held, upgraded: (this.websocket?.upgraded ?? 0) + bin.websocket.upgraded };
    if (bin.streams) {
      this.streams ??= { events: 0, tokens: 0 };
      for (const name in this.streams) this.streams[name] += bin.streams[name];
      for (const name of STREAM_TIMES) this.ofStreams[name].add(bin.streams[name]);
    }
    return this;
  }

  figures() {
    const times = this.times.times(), [p50, p95, p99, max] = quantilesOf(times, POINT_QUANTILES);
    const streams = this.streams && { ...this.streams,
      ...Object.fromEntries(STREAM_TIMES.map((name) => [name, quantilesOf(this.ofStreams[name].times(), [0.5, 0.99])])) };
    return { ...this.counts, streams, websocket: this.websocket, p50, p95, p99, max, mean: meanOf(times) };
  }
}

/// Figures of a bin that charts draw each time.
function summarize(bin) {
  bin.q = quantilesOf(bin.times, POINT_QUANTILES);
  bin.classes = classesOf(bin);
  if (!bin.streams) return;
  bin.s = STREAM_TIMES.flatMap((name) => quantilesOf(bin.streams[name], [0.5, 0.99]));
  [bin.longestGap] = quantilesOf(bin.streams.gaps, [1]);
}

function merge(bin, later) {
  bin.w = later.n + later.w - bin.n;
  [bin.in_flight, bin.backlog] = [later.in_flight, later.backlog];
  bin.max_in_flight = Math.max(bin.max_in_flight, later.max_in_flight);
  bin.times = mergeTimes(bin.times, later.times);
  mergeCounts(bin, later);
  if (later.websocket) bin.websocket = { ...later.websocket, upgraded: (bin.websocket?.upgraded ?? 0) + later.websocket.upgraded };
  if (!later.streams) return;
  if (!bin.streams) { bin.streams = later.streams; return; }
  const { streams } = bin;
  for (const name of ["events", "tokens"]) streams[name] += later.streams[name];
  for (const name of STREAM_TIMES) streams[name] = mergeTimes(streams[name], later.streams[name]);
}

/// Counts that are added up.
const SUMS = ["ok", "failed", "bytes", "iterations", "cpu"], SUMS_BY_NAME = ["status", "accepted", "failures"];

/// Adds the counts of a bin: what is in it once, by status and kind of failure, and by step.
function mergeCounts(to, bin) {
  for (const key of SUMS) to[key] += bin[key];
  for (const key of SUMS_BY_NAME) {
    const all = to[key], own = bin[key];
    for (const name in own) all[name] = (all[name] ?? 0) + own[name];
  }
  if (to.steps.length < bin.steps.length) {
    const longer = new Float64Array(bin.steps.length);
    longer.set(to.steps);
    to.steps = longer;
  }
  const all = to.steps, own = bin.steps;
  for (let i = 0; i < own.length; i++) all[i] += own[i];
}
