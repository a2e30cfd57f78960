// Times with their numbers, merged and summed up. Any percentile of any range is that of its histogram, as weir's own.
//
// A time is the cell of a grid that is finer than the buckets of the histograms, so that a sum over a thousand intervals
// is additions into one array, and not a thousand merges.

const CELLS_PER_DOUBLING = 512, CELLS = 40 * CELLS_PER_DOUBLING + 1;
/// Time of each cell that was seen, in nanoseconds.
const cellTimes = new Float64Array(CELLS);
const cellOf = (ns) => Math.min(CELLS - 1, Math.round(Math.log2(ns + 1) * CELLS_PER_DOUBLING));
const NO_TIMES = { cells: new Uint16Array(0), counts: new Float64Array(0) };

/// Flat pairs (time, number) from the wire, where times are distances.
function unpackTimes(flat) {
  if (!flat.length) return NO_TIMES;
  const cells = new Uint16Array(flat.length / 2), counts = new Float64Array(flat.length / 2);
  for (let i = 0, time = 0; i < cells.length; i++) {
    time += flat[2 * i];
    const cell = cellOf(time);
    cellTimes[cell] = time;
    cells[i] = cell;
    counts[i] = flat[2 * i + 1];
  }
  return { cells, counts };
}

/// Sum of two.
function mergeTimes(a, b) {
  if (!a.cells.length) return b;
  if (!b.cells.length) return a;
  const cells = new Uint16Array(a.cells.length + b.cells.length), counts = new Float64Array(cells.length);
  let i = 0, j = 0, k = 0;
  while (i < a.cells.length || j < b.cells.length) {
    const [one, other] = [a.cells[i] ?? CELLS, b.cells[j] ?? CELLS];
    cells[k] = Math.min(one, other);
    if (one <= other) counts[k] += a.counts[i++];
    if (other <= one) counts[k] += b.counts[j++];
    k++;
  }
  return { cells: cells.slice(0, k), counts: counts.slice(0, k) };
}

/// Sum of any number of times.
class TimeSum {
  constructor() {
    this.all = new Float64Array(CELLS);
    this.clear();
  }

  clear() {
    this.all.fill(0);
    [this.low, this.high] = [CELLS, -1];
    return this;
  }

  add({ cells, counts }) {
    if (!cells.length) return;
    for (let i = 0; i < cells.length; i++) this.all[cells[i]] += counts[i];
    this.low = Math.min(this.low, cells[0]);
    this.high = Math.max(this.high, cells[cells.length - 1]);
  }

  /// The same as one list of times.
  times() {
    const cells = [], counts = [];
    for (let cell = this.low; cell <= this.high; cell++) if (this.all[cell]) { cells.push(cell); counts.push(this.all[cell]); }
    return { cells, counts };
  }
}

/// Quantiles in milliseconds; null without times.
function quantilesOf({ cells, counts }, wanted) {
  let count = 0;
  for (let i = 0; i < counts.length; i++) count += counts[i];
  if (!count) return wanted.map(() => null);
  let i = 0, sum = counts[0];
  return wanted.map((q) => {
    const rank = Math.min(count, Math.max(1, Math.ceil(q * count - 1e-9)));
    while (sum < rank) sum += counts[++i];
    return cellTimes[cells[i]] / 1e6;
  });
}

/// Mean in milliseconds; null without times.
function meanOf({ cells, counts }) {
  let sum = 0, n = 0;
  for (let i = 0; i < cells.length; i++) { sum += cellTimes[cells[i]] * counts[i]; n += counts[i]; }
  return n ? sum / n / 1e6 : null;
}
