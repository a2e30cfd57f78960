// Heat maps: how many response times, or gaps between events, were how long, over time. A percentile is one line; two
// kinds of requests, fast ones and slow ones, are two bands.

/// Rows of the map: by the logarithm of the time.
const ROWS_PER_DOUBLING = 6;

/// What a map shows of a bin: its times, and of these p50, p99 and the maximum in milliseconds.
const RESPONSE_TIMES = { times: (bin) => bin.times, p50: (bin) => bin.q[0], p99: (bin) => bin.q[2], max: (bin) => bin.q[3] };
const EVENT_GAPS = { times: (bin) => bin.streams?.gaps ?? NO_TIMES, p50: (bin) => bin.s?.[2] ?? null, p99: (bin) => bin.s?.[3] ?? null, max: (bin) => bin.longestGap ?? null };

class HeatChart extends RunChart {
  /// Takes the bins to be drawn; `of` is what is shown of them.
  updateHeat(bins, of, store, end, extra) {
    // The range of the map is that of its times; the line is what keys and pointer read.
    const lowest = bins.map((bin) => of.times(bin).cells.length ? cellTimes[of.times(bin).cells[0]] / 1e6 : null);
    Object.assign(this, { bins, of, store, lowest });
    const xs = bins.map((bin) => store.start(bin) + store.seconds(bin) / 2);
    this.update([{ xs, y: bins.map(of.p50) }, { xs, y: bins.map(of.p99) }], end, extra);
  }

  rangeOfY(lines, from, to) {
    let [least, most] = [Infinity, 0];
    const [start, stop] = this.inSight({ xs: this.spec.lines[0].xs }, from, to);
    for (let i = start; i < stop; i++) {
      if (this.lowest?.[i] > 0) least = Math.min(least, this.lowest[i]);
      most = Math.max(most, this.bins?.[i] ? this.of.max(this.bins[i]) ?? 0 : 0);
    }
    return most > 0 ? [least / 1.15, most * 1.15] : [1, 10];
  }

  draw() {
    super.draw();
    if (!this.bins || !this.size) return;
    const width = Math.max(1, Math.round(this.right - this.left)), bottom = this.size[1] - BOTTOM;
    this.canvas ??= element("canvas", { class: "heat", "aria-hidden": "true" });
    const [lowMs, highMs] = [this.msOf(bottom), this.msOf(TOP)];
    const base = cellOf(lowMs * 1e6), cellsOfRow = CELLS_PER_DOUBLING / ROWS_PER_DOUBLING;
    const rows = Math.max(1, Math.ceil((cellOf(highMs * 1e6) - base) / cellsOfRow)), columns = Math.min(width, Math.max(1, this.bins.length));
    const grid = this.gridOf(columns, rows, base, cellsOfRow);
    // A canvas that is given its own size again is made anew.
    if (this.canvas.width !== columns || this.canvas.height !== rows) Object.assign(this.canvas, { width: columns, height: rows });
    const place = `left:${this.left}px;top:${TOP}px;width:${width}px;height:${bottom - TOP}px`;
    if (this.place !== place) this.canvas.style.cssText = this.place = place;
    this.plot.prepend(this.canvas);
    paintGrid(this.canvas, grid, this.colour ??= getComputedStyle(this.canvas).color);
  }

  msOf(px) {
    const bottom = this.size[1] - BOTTOM, { at, from } = scales[this.y.scale];
    const [low, high] = this.rangeOfY([], ...(this.view ?? this.whole)).map(at);
    return from(low + (1 - (px - TOP) / (bottom - TOP)) * (high - low));
  }

  /// Number of requests per second in each place.
  gridOf(columns, rows, base, cellsOfRow) {
    const [from, to] = this.view ?? this.whole, grid = new Float64Array(columns * rows), { store } = this;
    const columnOf = (s) => Math.floor((s - from) / (to - from) * columns);
    for (const bin of this.bins) {
      const start = store.start(bin), seconds = store.seconds(bin);
      const first = Math.max(0, columnOf(start)), last = Math.min(columns - 1, Math.max(columnOf(start + seconds) - 1, columnOf(start)));
      if (first > last || !seconds) continue;
      const own = this.rowsOf(this.of.times(bin), rows, base, cellsOfRow);
      for (let i = 0; i < own.length; i += 2) {
        const at = own[i] * columns, level = own[i + 1] / seconds;
        for (let column = first; column <= last; column++) grid[at + column] += level;
      }
    }
    return grid;
  }

  /// Pairs of a row and its number of requests. A list of times never changes, so that only those of the last bin are
  /// new, until the axis is another one.
  rowsOf(times, rows, base, cellsOfRow) {
    const axis = `${rows} ${base}`;
    if (this.rows?.axis !== axis) this.rows = { axis, known: new WeakMap() };
    let own = this.rows.known.get(times);
    if (own) return own;
    own = [];
    const { cells, counts } = times;
    for (let i = 0; i < cells.length; i++) {
      const row = rows - 1 - Math.floor((cells[i] - base) / cellsOfRow);
      if (row < 0 || row >= rows) continue;
      // Cells ascend, so that those of a row follow each other.
      if (own[own.length - 2] === row) own[own.length - 1] += counts[i]; else own.push(row, counts[i]);
    }
    own = Float64Array.from(own);
    this.rows.known.set(times, own);
    return own;
  }
}

/// Colours a grid: the more requests, the less is seen of the ground; by the root, so that single ones are seen, too.
function paintGrid(canvas, grid, colour) {
  const [red, green, blue] = colour.match(/[\d.]+/g).map(Number);
  let most = 0;
  for (let i = 0; i < grid.length; i++) if (grid[i] > most) most = grid[i];
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height), { data } = image;
  for (let i = 0; i < grid.length; i++) {
    if (!grid[i]) continue;
    data[4 * i] = red; data[4 * i + 1] = green; data[4 * i + 2] = blue;
    data[4 * i + 3] = 30 + 225 * Math.sqrt(grid[i] / most);
  }
  context.putImageData(image, 0, 0);
}
