"use strict";
// Draws the charts of the page from their data, lets the reader zoom, and names the values at a place.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const BLANK = "\u00a0";
  const TOP = 24, BOTTOM = 40, RIGHT = 14;
  // More bands than these would become one: then each point has its interval, as in svg.rs.
  const MOST_BANDS = 3;

  // --- Units: each as src/report/page/unit.rs writes it.

  const apart = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  const rate = (v) => v >= 999.5 ? apart(Math.round(v)) : v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1)
    : v === 0 ? "0" : v.toFixed(2);
  const trim = (text) => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  const signed = (v) => {
    const m = Math.abs(v);
    const text = m > 0 && m < 0.0995 ? trim(m.toFixed(Math.min(9, 2 - Math.floor(Math.log10(m))))) : rate(m);
    return (v < 0 ? "\u2212" : "") + text;
  };
  const nines = (q) => -Math.log10(Math.max(1 - q, 1e-9));
  const percentile = (q) => trim((q * 100).toFixed(Math.max(0, Math.floor(nines(q) + 1e-9))));
  const timeParts = (ms) => {
    const ns = Math.round(ms * 1e6);
    return ns < 1e3 ? [ns, "ns"] : ns < 1e6 ? [ns / 1e3, "us"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  };
  const time = (ms) => {
    const [v, unit] = timeParts(ms);
    return v.toFixed(v >= 100 || Number.isInteger(v) ? 0 : v >= 10 ? 1 : 2) + BLANK + unit;
  };
  const roundTime = (ms) => {
    const [v, unit] = timeParts(ms);
    return trim(v.toFixed(3)) + BLANK + unit;
  };
  const clock = (s) => {
    const ms = Math.round(s * 1e3), hours = Math.floor(ms / 3.6e6), minutes = Math.floor(ms / 6e4) % 60;
    const seconds = (ms % 6e4) / 1e3, rest = (seconds < 10 ? "0" : "") + trim(seconds.toFixed(3));
    return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
  };
  const powers = ["B", "kB", "MB", "GB", "TB"];
  const bytes = (v) => {
    let i = 0;
    for (; v >= 999.5 && i < powers.length - 1; i++) v /= 1000;
    return v.toFixed(i === 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2) + BLANK + powers[i];
  };
  const fraction = (v) => {
    const p = v * 100;
    const text = p <= 0 ? "0" : p >= 100 ? "100" : p < 0.001 ? "<0.001" : p > 99.9 ? ">99.9" : p < 0.0995 ? p.toFixed(3)
      : p < 9.995 ? p.toFixed(2) : p.toFixed(1);
    return text + "%";
  };
  const round = (v) => {
    const m = Math.abs(v);
    return (v < 0 ? "\u2212" : "") + (m >= 1000 ? apart(Math.round(m)) : trim(m.toFixed(6)));
  };
  const roundBytes = (v) => {
    const power = Math.min(4, Math.max(0, Math.floor(Math.log10(v) / 3 + 1e-9)));
    return round(v / 1000 ** power) + BLANK + powers[power];
  };
  const units = {
    count: { show: (v) => Number.isInteger(v) ? apart(v) : rate(v), tick: round },
    per_s: { show: (v) => rate(v) + "/s", tick: round },
    ms: { show: time, tick: roundTime },
    s: { show: (s) => s >= 60 ? clock(s) : time(s * 1e3), tick: (s) => s >= 60 ? clock(s) : roundTime(s * 1e3) },
    fraction: { show: fraction, tick: (v) => round(v * 100) + "%" },
    bytes: { show: bytes, tick: roundBytes },
    quantile: { show: (q) => "p" + percentile(q), tick: (q) => percentile(q) + "%" },
    of: { show: (v, name) => (signed(v) + BLANK + name).trim(), tick: round },
  };
  const show = (axis, v) => units[axis.unit].show(v, axis.of);
  const tick = (axis, v) => v === 0 ? "0" : units[axis.unit].tick(v);

  // --- Scales: see src/report/page/scale.rs.

  const scales = {
    linear: { at: (v) => v, from: (p) => p },
    log: { at: (v) => Math.log10(Math.max(v, Number.MIN_VALUE)), from: (p) => 10 ** p },
    tail: { at: nines, from: (p) => 1 - 10 ** -p },
  };
  const within = (low, high) => (v) => v >= low - Math.abs(low) * 1e-9 && v <= high + Math.abs(high) * 1e-9;
  function evenTicks(low, high, wanted) {
    const raw = (high - low) / Math.max(1, wanted);
    if (!(raw > 0) || !Number.isFinite(raw)) return [low];
    const power = 10 ** Math.floor(Math.log10(raw));
    return multiples(low, high, [1, 2, 5, 10].map((m) => m * power).find((step) => step >= raw * 0.999));
  }
  /// Steps that divide minutes, hours or days.
  function clockTicks(low, high, wanted) {
    const raw = (high - low) / Math.max(1, wanted);
    const step = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200].find((s) => s >= raw * 0.999);
    return multiples(low, high, step ?? Math.ceil(raw / 86400) * 86400);
  }
  function multiples(low, high, step) {
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: Math.min(100, Math.max(0, last - first + 1)) }, (_, i) => (first + i) * step);
  }
  function logTicks(low, high, wanted) {
    const all = (steps) => {
      const found = [];
      for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
        for (const m of steps) found.push(m * 10 ** p);
      }
      return found.filter(within(low, high));
    };
    const fine = all([1, 2, 5]);
    const ticks = fine.length <= wanted * 1.5 ? fine : all([1]);
    return ticks.length > 2 ? ticks : evenTicks(low, high, wanted);
  }
  function tailTicks(low, high) {
    const ticks = [0, 0.5, ...Array.from({ length: 8 }, (_, i) => 1 - 10 ** -(i + 1))].filter(within(low, high));
    return ticks.length > 2 ? ticks : evenTicks(low, high, 5);
  }
  const ticksOf = ({ scale, unit }, low, high, wanted) => {
    const ticks = (scale === "log" ? logTicks : scale === "tail" ? tailTicks
      : unit === "s" && high - low > 8 * wanted ? clockTicks : evenTicks)(low, high, wanted);
    // There is no round 1.5.
    return unit === "count" && high - low >= 1 ? ticks.filter(Number.isInteger) : ticks;
  };

  // --- A little of the DOM. Words get in as text only.

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  function shape(name, attributes, words) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (words !== undefined) made.textContent = words;
    return made;
  }
  const fixed = (v) => Math.round(v * 10) / 10;
  /// The index of the first of ascending values that is not below `v`.
  function firstFrom(xs, v) {
    let low = 0, high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < v) low = middle + 1; else high = middle;
    }
    return low;
  }

  class Chart {
    constructor(figure, spec, peers) {
      Object.assign(this, { figure, spec, peers, cursor: null, view: null, hidden: new Set() });
      [this.x, this.y] = spec.axes;
      this.plot = figure.querySelector(".plot");
      this.xScale = scales[this.x.scale];
      let low = Infinity, high = -Infinity;
      for (const { xs } of spec.lines) {
        const first = this.x.scale === "log" ? firstFrom(xs, Number.MIN_VALUE) : 0;
        if (first < xs.length) { low = Math.min(low, xs[first]); high = Math.max(high, xs[xs.length - 1]); }
      }
      if (low === Infinity) [low, high] = this.x.scale === "log" ? [1, 10] : [0, 0.9];
      if (high <= low) high = this.x.scale === "linear" ? low + 1 : this.x.scale === "log" ? low * 10 : 0.9;
      this.whole = [this.xScale.at(low), this.xScale.at(high)];
      figure.classList.add("live");
      this.legend();
      this.tools();
      this.listen();
      new ResizeObserver(() => this.draw()).observe(this.plot);
    }

    // --- What stands around the plot

    legend() {
      const list = this.list = this.figure.querySelector(".legend");
      this.where = element("li", { class: "where" });
      this.values = this.spec.lines.map((line, i) => {
        const value = element("data");
        const button = element("button", { type: "button", "aria-pressed": "true" }, element("i"), line.name, value);
        button.addEventListener("click", () => {
          this.hidden.has(i) ? this.hidden.delete(i) : this.hidden.add(i);
          button.setAttribute("aria-pressed", String(!this.hidden.has(i)));
          this.draw();
        });
        list.children[i].replaceChildren(button);
        return value;
      });
      list.append(this.where);
    }

    tools() {
      const caption = this.figure.querySelector("figcaption");
      const bar = element("div", { class: "tools" });
      const add = (kind, label, words, act) => {
        const button = element("button", { type: "button", class: kind, title: label }, words);
        button.setAttribute("aria-label", `${label}: ${this.spec.title}`);
        button.addEventListener("click", act);
        bar.append(button);
        return button;
      };
      const values = this.spec.lines.flatMap((line) => [line.y, line.low ?? [], line.high ?? []]).flat();
      if (values.some((v) => v > 0) && values.every((v) => v === null || v > 0)) {
        const log = add("", "log axis", "log", () => {
          this.y.scale = this.y.scale === "log" ? "linear" : "log";
          log.setAttribute("aria-pressed", String(this.y.scale === "log"));
          this.draw();
        });
        log.setAttribute("aria-pressed", String(this.y.scale === "log"));
      }
      add("in", "Zoom in", "", () => this.zoom(0.5));
      this.less = [add("out", "Zoom out", "", () => this.zoom(2)), add("", "Show all", "all", () => this.setView(null))];
      const words = element("div");
      words.append(...caption.childNodes);
      caption.append(words, bar);
      caption.className = "head";
    }

    // --- Drawing

    draw() {
      const width = this.plot.clientWidth, height = this.plot.clientHeight || 240;
      if (!width) return;
      if (width !== this.right + RIGHT) this.list.style.minHeight = "";
      const [from, to] = this.view ?? this.whole;
      const lines = this.spec.lines.filter((_, i) => !this.hidden.has(i));
      const [low, high] = this.rangeOfY(lines, this.xScale.from(from), this.xScale.from(to));
      const yScale = scales[this.y.scale], bottom = height - BOTTOM;
      const [yLow, yHigh] = [yScale.at(low), yScale.at(high)];
      const yTicks = ticksOf(this.y, low, high, 5).map((v) => [v, tick(this.y, v)]);
      // At least so wide that charts below each other are mostly in line.
      const left = Math.max(56, 10 + Math.max(...yTicks.map(([, text]) => text.length)) * 7.2);
      this.left = left;
      this.right = width - RIGHT;
      this.toX = (v) => left + (this.xScale.at(v) - from) / (to - from) * (this.right - left);
      this.toY = (v) => TOP + (1 - (yScale.at(v) - yLow) / (yHigh - yLow)) * (bottom - TOP);
      this.toValue = (px) => this.xScale.from(from + (px - left) / (this.right - left) * (to - from));

      const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
      const id = `clip-${this.figure.dataset.chart}`;
      const clip = shape("clipPath", { id });
      // Points at the edge are whole, and intervals beside them.
      clip.append(shape("rect", { x: left - 12, y: 0, width: this.right - left + 24, height: bottom + 4 }));
      const inside = shape("g", { "clip-path": `url(#${id})` });
      const named = []; // above the lines, to be legible
      for (const [start, end, name] of this.spec.spans) {
        const [a, b] = [this.toX(start), this.toX(end)].map((x) => Math.min(Math.max(x, left), this.right));
        if (b - a < 1) continue;
        inside.append(shape("rect", { class: "span", x: a, y: TOP, width: b - a, height: bottom - TOP }));
        if (b - a > name.length * 7) named.push([{ x: a + 4, y: TOP + 13 }, name]);
      }
      for (const [v, text] of yTicks) {
        const y = fixed(this.toY(v));
        svg.append(shape("path", { class: "grid", d: `M${left} ${y}H${this.right}` }));
        svg.append(shape("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, text));
      }
      let free = -Infinity;
      for (const v of ticksOf(this.x, this.xScale.from(from), this.xScale.from(to), (this.right - left) / 75)) {
        const text = tick(this.x, v), half = text.length * 3.6;
        const x = Math.min(Math.max(this.toX(v), left), width - half);
        if (x - half < free) continue;
        free = x + half + 8;
        svg.append(shape("text", { x: fixed(x), y: bottom + 18, "text-anchor": "middle" }, text));
      }
      svg.append(shape("text", { x: 0, y: 11 }, this.y.name));
      svg.append(shape("text", { x: this.right, y: height - 4, "text-anchor": "end" }, this.x.name));
      for (const [v, name] of this.spec.levels) {
        const y = this.toY(v);
        inside.append(shape("path", { class: "level", d: `M${left} ${y}H${this.right}` }));
        named.push([{ x: this.right - 4, y: y - 5, "text-anchor": "end" }, name]);
      }
      for (const line of lines.slice().reverse()) this.drawLine(inside, line, this.xScale.from(from), this.xScale.from(to));
      for (const [attributes, words] of named) inside.append(shape("text", attributes, words));
      this.marks = shape("g", {});
      svg.append(clip, inside, this.marks);
      this.plot.replaceChildren(svg);
      for (const button of this.less) button.disabled = !this.view;
      this.point();
    }

    /// The indices of a line's points that are in sight, and the neighbours beyond.
    inSight(line, from, to) {
      return [Math.max(0, firstFrom(line.xs, from) - 1), Math.min(line.xs.length, firstFrom(line.xs, to) + 2)];
    }

    rangeOfY(lines, from, to) {
      let low = Infinity, high = -Infinity;
      const see = (v) => {
        if (v === null || v === undefined || (this.y.scale === "log" && v <= 0)) return;
        if (v < low) low = v;
        if (v > high) high = v;
      };
      for (const line of lines) {
        const [start, end] = this.inSight(line, from, to);
        for (let i = start; i < end; i++) { see(line.y[i]); see(line.low?.[i]); see(line.high?.[i]); }
      }
      this.spec.levels.forEach(([v]) => see(v));
      if (low === Infinity) return this.y.scale === "log" ? [1, 10] : [0, 1];
      if (this.y.scale === "log") return [low / 1.15, high * 1.15];
      const base = Math.min(low, 0);
      return [base * 1.05, high > base ? high + (high - base) * 0.05 : base + 1];
    }

    /// Of points that share a column of pixels the least and the greatest are drawn, so that no peak is lost.
    drawLine(group, line, from, to) {
      const [start, end] = this.inSight(line, from, to);
      const { xs, y } = line;
      let d = "", joined = false;
      for (let i = start; i < end;) {
        if (y[i] === null) { joined = false; i++; continue; }
        const column = Math.floor(this.toX(xs[i]));
        let low = i, high = i;
        const first = i;
        for (i++; i < end && y[i] !== null && Math.floor(this.toX(xs[i])) === column; i++) {
          if (y[i] < y[low]) low = i;
          if (y[i] > y[high]) high = i;
        }
        for (const j of low === high ? [low] : low < high ? [low, high] : [high, low]) {
          d += `${joined ? "L" : "M"}${fixed(this.toX(xs[j]))} ${fixed(this.toY(y[j]))}`;
          joined = true;
        }
        const alone = low === high && (first === 0 || y[first - 1] === null) && (i >= y.length || y[i] === null);
        if (alone) d += "h.1";
      }
      const hue = `h${line.hue}`;
      if (line.low) {
        const upper = [], lower = [];
        let last = -1;
        for (let i = start; i < end; i++) {
          if (line.low[i] === null || line.high[i] === null) continue;
          const x = fixed(this.toX(xs[i])), column = Math.floor(x), [a, b] = [this.toY(line.low[i]), this.toY(line.high[i])];
          if (column === last) {
            upper[upper.length - 1][1] = Math.min(upper[upper.length - 1][1], b);
            lower[lower.length - 1][1] = Math.max(lower[lower.length - 1][1], a);
          } else { upper.push([x, b]); lower.push([x, a]); }
          last = column;
        }
        const outline = [...upper, ...lower.reverse()].map(([x, v]) => `${x} ${fixed(v)}`).join("L");
        const banded = this.spec.lines.filter((other) => other.low).length;
        if (banded > MOST_BANDS) {
          const beside = (this.spec.lines.indexOf(line) - (banded - 1) / 2) * 2.5;
          const reaches = upper.map(([x, top], i) => `M${fixed(x + beside)} ${fixed(top)}V${fixed(lower[upper.length - 1 - i][1])}`);
          group.append(shape("path", { class: `reach ${hue}`, d: reaches.join("") }));
        } else if (outline) group.append(shape("path", { class: `band ${hue}`, d: `M${outline}Z` }));
      }
      group.append(shape("path", { class: `line ${hue}`, d }));
      if (end - start < (this.right - this.left) / 16) {
        for (let i = start; i < end; i++) {
          if (y[i] === null) continue;
          const kind = line.doubtful?.includes(i) ? `dot hollow ${hue}` : `dot ${hue}`;
          group.append(shape("circle", { class: kind, cx: fixed(this.toX(xs[i])), cy: fixed(this.toY(y[i])), r: 2.5 }));
        }
      }
    }

    // --- The place that the reader looks at

    /// The index of the point of a line that is nearest to a value of x, as far as it has any.
    nearest(line, x) {
      const i = firstFrom(line.xs, x);
      if (i === 0) return line.xs.length ? 0 : -1;
      if (i === line.xs.length) return i - 1;
      return this.xScale.at(x) - this.xScale.at(line.xs[i - 1]) < this.xScale.at(line.xs[i]) - this.xScale.at(x) ? i - 1 : i;
    }

    /// The line whose points the cursor steps through: the one with most of them.
    get leader() {
      return this.spec.lines.reduce((a, b) => b.xs.length > a.xs.length ? b : a, { xs: [] });
    }

    point() {
      if (!this.marks) return;
      this.marks.replaceChildren();
      const { cursor, plot } = this;
      if (cursor === null) {
        this.where.textContent = "";
        this.values.forEach((value) => { value.textContent = ""; value.removeAttribute("value"); });
        plot.setAttribute("aria-valuetext", "no place chosen; arrow keys choose one");
        return;
      }
      const x = this.toX(cursor);
      if (x >= this.left - 1 && x <= this.right + 1) {
        this.marks.append(shape("path", { class: "cursor", d: `M${fixed(x)} ${TOP}V${this.plot.clientHeight - BOTTOM}` }));
      }
      const said = [];
      this.spec.lines.forEach((line, i) => {
        const at = this.nearest(line, cursor);
        const value = at < 0 || this.hidden.has(i) || this.far(line.xs[at]) ? null : line.y[at];
        const data = this.values[i];
        if (value === null) {
          data.textContent = this.hidden.has(i) ? "" : "\u2013";
          data.removeAttribute("value");
          return;
        }
        const doubt = line.doubtful?.includes(at) ? " not trusted" : "";
        const band = (line.low && line.low[at] !== null && line.high[at] !== null
          ? ` [${show(this.y, line.low[at])} \u2013 ${show(this.y, line.high[at])}]` : "") + doubt;
        data.setAttribute("value", value);
        data.textContent = show(this.y, value) + band;
        said.push(`${line.name} ${show(this.y, value)}${band}`);
        const px = this.toX(line.xs[at]);
        if (px >= this.left - 1 && px <= this.right + 1) {
          this.marks.append(shape("circle", { class: `dot h${line.hue}`, cx: fixed(px), cy: fixed(this.toY(value)), r: 4 }));
        }
      });
      this.where.textContent = "at " + show(this.x, cursor);
      // A legend that has grown stays so: were it to shrink, the chart would jump away from under the pointer.
      this.list.style.minHeight = `${this.list.offsetHeight}px`;
      plot.setAttribute("aria-valuenow", cursor);
      plot.setAttribute("aria-valuetext", `${show(this.x, cursor)}: ${said.join(", ")}`);
    }

    /// A value that is elsewhere is not the value here.
    far(x) {
      return Math.abs(this.toX(x) - this.toX(this.cursor)) > 24;
    }

    together(act) {
      (this.peers ?? [this]).forEach(act);
    }

    setCursor(x) {
      this.together((chart) => { chart.cursor = x; chart.point(); });
    }

    setView(view) {
      if (view) {
        const span = Math.min(view[1] - view[0], this.whole[1] - this.whole[0]);
        const from = Math.min(Math.max(view[0], this.whole[0]), this.whole[1] - span);
        view = span >= (this.whole[1] - this.whole[0]) * 0.9999 ? null : [from, from + span];
        if (view && span < (this.whole[1] - this.whole[0]) * 1e-5) return;
      }
      this.together((chart) => { chart.view = view; chart.draw(); });
    }

    zoom(factor, centre = this.cursor) {
      const [from, to] = this.view ?? this.whole;
      const middle = centre === null ? (from + to) / 2 : Math.min(Math.max(this.xScale.at(centre), from), to);
      this.setView([middle - (middle - from) * factor, middle + (to - middle) * factor]);
    }

    /// Moves the cursor by a number of points, and the view with it.
    step(points) {
      const { xs } = this.leader;
      if (!xs.length) return;
      const [from, to] = (this.view ?? this.whole).map(this.xScale.from);
      const now = this.cursor === null ? (points > 0 ? firstFrom(xs, from) - 1 : firstFrom(xs, to) + 1) : this.nearest(this.leader, this.cursor);
      const x = xs[Math.min(Math.max(now + points, 0), xs.length - 1)];
      if (this.view) {
        const at = this.xScale.at(x), [a, b] = this.view;
        if (at < a) this.setView([at, at + b - a]); else if (at > b) this.setView([at - (b - a), at]);
      }
      this.setCursor(x);
    }

    listen() {
      const { plot } = this;
      const [low, high] = this.whole.map(this.xScale.from);
      const attributes = { tabindex: 0, role: "slider", "aria-label": `${this.spec.title}: place on the chart`,
        "aria-valuemin": low, "aria-valuemax": high, "aria-valuenow": low };
      for (const [key, value] of Object.entries(attributes)) plot.setAttribute(key, value);
      const keys = {
        ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
        PageDown: () => this.step(-Math.ceil(this.leader.xs.length / 20)),
        PageUp: () => this.step(Math.ceil(this.leader.xs.length / 20)),
        Home: () => this.step(-Infinity), End: () => this.step(Infinity),
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.setView(null),
        Escape: () => { this.setView(null); this.setCursor(null); },
      };
      plot.addEventListener("keydown", (event) => {
        const act = keys[event.key];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        act();
      });
      const place = (event) => event.clientX - plot.getBoundingClientRect().left;
      let start = null;
      const look = (px) => {
        const { xs } = this.leader;
        const i = this.nearest(this.leader, this.toValue(Math.min(Math.max(px, this.left), this.right)));
        if (i >= 0) this.setCursor(xs[i]);
      };
      plot.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        if (event.pointerType === "touch") { look(place(event)); return; }
        start = place(event);
        plot.setPointerCapture(event.pointerId);
      });
      plot.addEventListener("pointermove", (event) => {
        const now = place(event);
        look(now);
        if (start !== null && Math.abs(now - start) > 4) {
          const [a, b] = [Math.min(start, now), Math.max(start, now)].map((px) => Math.min(Math.max(px, this.left), this.right));
          this.marks.append(shape("rect", { class: "picked", x: a, y: TOP, width: b - a, height: plot.clientHeight - BOTTOM - TOP }));
        }
      });
      const end = (event) => {
        if (start === null) return;
        const [a, b] = [start, place(event)].sort((p, q) => p - q).map((px) => Math.min(Math.max(px, this.left), this.right));
        start = null;
        if (event.type === "pointerup" && b - a > 4) this.setView([a, b].map((px) => this.xScale.at(this.toValue(px))));
        else this.point();
      };
      plot.addEventListener("pointerup", end);
      plot.addEventListener("pointercancel", end);
      plot.addEventListener("pointerleave", () => { if (start === null && document.activeElement !== plot) this.setCursor(null); });
      plot.addEventListener("dblclick", () => this.setView(null));
      plot.addEventListener("blur", () => this.setCursor(null));
    }
  }

  const data = JSON.parse(document.getElementById("charts").textContent);
  const groups = new Map();
  for (const figure of document.querySelectorAll("figure.chart")) {
    const spec = data.charts[Number(figure.dataset.chart)];
    for (const line of spec.lines) line.xs = data.x[line.x];
    const peers = spec.group ? groups.get(spec.group) ?? groups.set(spec.group, []).get(spec.group) : null;
    const chart = new Chart(figure, spec, peers);
    peers?.push(chart);
  }
  const first = document.querySelector(".chart")?.closest(".plots");
  first?.after(element("p", { class: "help" }, "Drag over a chart to zoom, double-click to see all of it. By keyboard: "
    + "arrows choose a place, + and \u2212 zoom, 0 shows all. A name in a legend hides its line."));
})();
