// Intervals of the run in bounded memory. Neighbours are merged when there are too many, by the rule of live_store.rs.

const POINT_QUANTILES = [0.5, 0.95, 0.99, 1];

class Store {
  constructor(maxBins, interval) {
    Object.assign(this, { maxBins, interval, bins: [], shift: 1, next: null, end: Infinity });
  }

  /// Takes bins from the server; `all`: they are all that there is.
  take({ all, next, bins }) {
    if (all) Object.assign(this, { bins: [], shift: 1 });
    for (const bin of bins) {
      bin.times = unpackTimes(bin.times);
      bin.failed_times = unpackTimes(bin.failed_times);
      for (const name of ["first", "gaps"]) if (bin.streams) bin.streams[name] = unpackTimes(bin.streams[name]);
      this.add(bin);
    }
    this.next = next;
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

  /// Figures of a range: sums, and percentiles of all its times.
  figures(range) {
    const bins = this.within(range), sum = (of) => bins.reduce((all, bin) => all + of(bin), 0);
    const seconds = sum((bin) => this.seconds(bin)), times = sumTimes(bins.map((bin) => bin.times));
    const [p50, p95, p99, max] = quantilesOf(times, POINT_QUANTILES);
    const ok = sum((bin) => bin.ok), failed = sum((bin) => bin.failed), last = bins[bins.length - 1];
    const total = { status: {}, failures: {}, steps: [] };
    for (const bin of bins) mergeMaps(total, bin);
    const [from, to] = bins.length ? [this.start(bins[0]), this.start(last) + this.seconds(last)] : [0, 0];
    const ofStreams = bins.flatMap((bin) => bin.streams ? [bin.streams] : []);
    const streams = ofStreams.length ? { events: ofStreams.reduce((all, one) => all + one.events, 0), tokens: ofStreams.reduce((all, one) => all + one.tokens, 0),
      first: quantilesOf(sumTimes(ofStreams.map((one) => one.first)), [0.5, 0.99]), gaps: quantilesOf(sumTimes(ofStreams.map((one) => one.gaps)), [0.5, 0.99]) } : null;
    return { streams, from, to, seconds, ok, failed, p50, p95, p99, max, mean: meanOf(times), bytes: sum((bin) => bin.bytes),
      iterations: sum((bin) => bin.iterations), inFlight: last?.in_flight ?? 0, backlog: last?.backlog ?? 0, ...total };
  }
}

/// Figures of a bin that charts draw each time.
function summarize(bin) {
  bin.q = quantilesOf(bin.times, POINT_QUANTILES);
  bin.classes = classesOf(bin);
  if (bin.streams) bin.s = ["first", "gaps"].flatMap((name) => quantilesOf(bin.streams[name], [0.5, 0.99]));
}

function merge(bin, later) {
  bin.w = later.n + later.w - bin.n;
  for (const key of ["ok", "failed", "bytes", "iterations"]) bin[key] += later[key];
  [bin.in_flight, bin.backlog] = [later.in_flight, later.backlog];
  bin.times = mergeTimes(bin.times, later.times);
  bin.failed_times = mergeTimes(bin.failed_times, later.failed_times);
  mergeMaps(bin, later);
  if (!later.streams) return;
  if (!bin.streams) { bin.streams = later.streams; return; }
  const { streams } = bin;
  for (const name of ["events", "tokens"]) streams[name] += later.streams[name];
  for (const name of ["first", "gaps"]) streams[name] = mergeTimes(streams[name], later.streams[name]);
}

function mergeMaps(bin, later) {
  for (const key of ["status", "failures"]) {
    for (const [name, n] of Object.entries(later[key])) bin[key][name] = (bin[key][name] ?? 0) + n;
  }
  // In place: there may be fifty steps in each of a thousand bins.
  for (let i = 0; i < later.steps.length; i++) {
    const own = bin.steps[i] ??= [0, 0, 0, 0], step = later.steps[i];
    for (let k = 0; k < 4; k++) own[k] += step[k];
  }
}
