// What the gateway has counted, over the last minutes. It gives counters since its start; rates are their differences,
// by its own clock, so that a page that asks late has the mean of the time between, and nothing is lost.

const SPAN_S = 300, MIN_SPAN_S = 60, WINDOW_S = 10;
/// States that come closer together are one: a rate over less would be chance.
const MIN_STEP_S = 0.5;

/// Keys that were made: a key in hundreds of states is one string.
const keys = new Map();

function keyOf(...parts) {
  const key = JSON.stringify(parts);
  if (!keys.has(key)) keys.set(key, key);
  return keys.get(key);
}

/// Upper bounds of the buckets of all histograms, in seconds; null for the last, which has no end.
let bounds = [];
const countsOf = (latency) => { bounds = latency.map(([bound]) => bound); return Float64Array.from(latency, ([, n]) => n); };

/// Counters, histograms and levels of a state, by key.
function countersOf(state) {
  const counts = new Map(), times = new Map(), levels = new Map();
  const add = (n, ...parts) => { const key = keyOf(...parts); counts.set(key, (counts.get(key) ?? 0) + n); };
  const addAll = (all, ...parts) => { for (const [name, n] of Object.entries(all)) add(n, ...parts, name); };
  let total = null;
  for (const { name, calls, rejected, attempts_skipped, latency } of state.routes) {
    for (const [outcome, n] of Object.entries(calls)) {
      add(n, "route", name, outcome);
      add(n, "route", name, "calls");
      add(n, "all", outcome);
      add(n, "all", "calls");
    }
    for (const { upstream, reason, priority, count } of rejected) add(count, "rejected", name, upstream, reason, priority);
    add(attempts_skipped, "route", name, "skipped");
    const own = countsOf(latency);
    times.set(keyOf("route", name), own);
    total = own.map((n, i) => n + (total?.[i] ?? 0));
  }
  if (total) times.set(keyOf("all"), total);
  for (const { name, responses } of state.local_routes) add(responses, "local", name);
  for (const one of state.upstreams) {
    const { name, attempts, attempts_ended, hedges, retries, failures, latency, hosts } = one;
    const [launched, retried] = [attempts.stage + attempts.failure, attempts.retry];
    add(Object.values(attempts).reduce((sum, n) => sum + n, 0), "upstream", name, "attempts");
    add(launched, "upstream", name, "hedged");
    add(retried, "upstream", name, "retried");
    add(launched, "all", "hedged");
    add(retried, "all", "retried");
    add(hedges.won, "all", "hedges won");
    add(retries.won, "all", "retries won");
    addAll(attempts_ended, "upstream", name, "ended");
    addAll(hedges, "upstream", name, "hedges");
    addAll(retries, "upstream", name, "retries");
    addAll(failures, "failure", name);
    times.set(keyOf("upstream", name), countsOf(latency));
    for (const { host, succeeded, failed } of hosts) {
      add(succeeded, "host", name, host, "succeeded");
      add(failed, "host", name, host, "failed");
    }
  }
  for (const limit of state.limits) {
    for (const of of ["limit", "in_flight", "queue_length"]) levels.set(keyOf(...limitOf(limit), of), limit[of]);
  }
  return { counts, times, levels };
}

/// What a limit is of: an upstream or a route, and its name.
const limitOf = ({ upstream, route }) => upstream === undefined ? ["route", route] : ["upstream", upstream];

/// Quantile of a histogram, in milliseconds: as if times were spread evenly in each bucket. A time in the last bucket is
/// at least what is returned, and marked. Null without times.
function quantileOf(counts, q) {
  const rank = q * counts.reduce((sum, n) => sum + n, 0);
  let below = 0, low = 0;
  for (let i = 0; i < counts.length; i++) {
    const [bound, n] = [bounds[i], counts[i]];
    if (n && below + n >= rank) return bound === null ? { ms: low * 1e3, isOver: true } : { ms: (low + (bound - low) * (rank - below) / n) * 1e3, isOver: false };
    below += n;
    low = bound ?? low;
  }
  return null;
}

/// States of the last minutes, oldest first. A row without a run is a time at which the gateway was not reachable.
class History {
  constructor() {
    Object.assign(this, { rows: [], marks: [], state: null, ended: new Set() });
  }

  /// Takes a state that came at a time in seconds. Returns whether it is new, and whether it is that of another start.
  take(state, x) {
    const last = this.last();
    // A process that another one has taken the place of may respond once more.
    if (this.ended.has(state.run) || last && last.run === state.run && state.now_s <= last.at) return { isNew: false };
    const isRestart = Boolean(last) && last.run !== state.run;
    if (isRestart) {
      this.ended.add(last.run);
      this.mark(x, "restarted", "bad");
    }
    this.state = state;
    const row = { x, at: state.now_s, run: state.run, ...countersOf(state), before: isRestart ? null : last ?? null };
    if (last && !isRestart && last === this.rows[this.rows.length - 1] && state.now_s - last.at < MIN_STEP_S) {
      this.rows.pop();
      row.before = last.before;
    }
    this.rows.push(row);
    // What has left the window is not kept by the row after it.
    while (this.rows.length > 2 && this.rows[1].x < x - SPAN_S) this.rows.shift();
    if (this.rows[0].before) this.rows[0].before = null;
    this.marks = this.marks.filter(([at]) => at >= x - SPAN_S);
    return { isNew: true, isRestart };
  }

  /// The gateway was not reachable at a time.
  lost(x) {
    if (!this.rows.length || this.rows[this.rows.length - 1].run === null) return;
    this.rows.push({ x, run: null });
  }

  mark(x, words, tone) {
    this.marks.push([x, words, tone]);
  }

  /// Beginning of what is drawn: the last minutes, or less while the page is young.
  from(now) {
    return Math.max(now - SPAN_S, Math.min(this.rows[0]?.x ?? now, now - MIN_SPAN_S));
  }

  /// The last state.
  last() {
    return this.rows.findLast((row) => row.run !== null);
  }

  /// State at the beginning of the time that figures are of; null if there is none yet.
  base() {
    const last = this.last();
    if (!last) return null;
    const own = this.rows.filter((row) => row.run === last.run && row !== last);
    return own.findLast((row) => row.at <= last.at - WINDOW_S) ?? own[0] ?? null;
  }

  /// Number that was counted between two states; null if that cannot be known: the counter has begun anew.
  static between(before, row, key) {
    if (!before) return null;
    const n = (row.counts.get(key) ?? 0) - (before.counts.get(key) ?? 0);
    return n < 0 ? null : n;
  }

  /// Times between two states, by bucket.
  static timesBetween(before, row, key) {
    const [old, now] = [before?.times.get(key), row.times.get(key)];
    if (!before || !now) return [];
    const own = now.map((n, i) => n - (old?.[i] ?? 0));
    return own.some((n) => n < 0) ? [] : own;
  }

  /// Number per second in the last seconds, or null.
  rate(...parts) {
    const [base, last] = [this.base(), this.last()];
    const n = base && History.between(base, last, keyOf(...parts));
    return n === null ? null : n / (last.at - base.at);
  }

  /// Fraction of one counter in the sum of two, in the last seconds, or null.
  fraction(part, rest) {
    const [a, b] = [this.rate(...part), this.rate(...rest)];
    return a === null || b === null || a + b === 0 ? null : a / (a + b);
  }

  /// Quantile of times in the last seconds, or null.
  quantile(q, ...parts) {
    const last = this.last();
    return last ? quantileOf(History.timesBetween(this.base(), last, keyOf(...parts)), q) : null;
  }

  /// Points of a line: of each state a value, of each time without one a break.
  line(of) {
    return { xs: this.rows.map((row) => row.x), y: this.rows.map((row) => row.run === null ? null : of(row)) };
  }

  /// Line of a counter, per second.
  rates(...parts) {
    const key = keyOf(...parts);
    return this.line((row) => {
      const n = History.between(row.before, row, key);
      return n === null ? null : n / (row.at - row.before.at);
    });
  }

  /// Line of a quantile, in milliseconds.
  quantiles(q, ...parts) {
    const key = keyOf(...parts);
    return this.line((row) => quantileOf(History.timesBetween(row.before, row, key), q)?.ms ?? null);
  }

  /// Line of a level.
  levels(...parts) {
    const key = keyOf(...parts);
    return this.line((row) => row.levels.get(key) ?? null);
  }
}
