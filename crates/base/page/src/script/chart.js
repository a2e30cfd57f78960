// A chart: drawn from its data; one cursor, one view.

// Margins of the plot area, in pixels.
const TOP = 24, BOTTOM = 40, RIGHT = 14;

class Chart {
  constructor(figure, spec, peers) {
    const hidden = new Set(spec.lines.flatMap((line, i) => line.hidden ? [i] : []));
    Object.assign(this, { figure, spec, peers, cursor: null, view: null, hidden });
    [this.x, this.y] = spec.axes;
    this.plot = figure.querySelector(".plot");
    this.xScale = scales[this.x.scale];
    let low = Infinity, high = -Infinity;
    for (const { xs } of spec.lines) {
      const first = this.x.scale === "log" ? firstFrom(xs, Number.MIN_VALUE) : 0;
      if (first < xs.length) { low = Math.min(low, xs[first]); high = Math.max(high, xs[xs.length - 1]); }
    }
    for (const v of spec.cells?.x ?? []) { low = Math.min(low, v); high = Math.max(high, v); }
    if (low === Infinity) [low, high] = this.x.scale === "log" ? [1, 10] : [0, 0.9];
    if (high <= low) high = this.x.scale === "linear" ? low + 1 : this.x.scale === "log" ? low * 10 : 0.9;
    this.whole = [this.xScale.at(low), this.xScale.at(high)];
    figure.classList.add("live");
    this.legend();
    this.tools();
    listenTo(this);
    new ResizeObserver(() => { this.size = null; this.draw(); }).observe(this.plot);
  }

  // --- Legend and buttons

  legend() {
    const list = this.list = this.figure.querySelector(".legend");
    this.where = element("li", { class: "where" });
    this.buttons = [];
    this.values = this.spec.lines.map((line, i) => {
      const value = element("data");
      const shown = String(!this.hidden.has(i));
      const button = element("button", { type: "button", "aria-pressed": shown }, element("i"), line.name, value);
      button.addEventListener("click", () => this.choose([i], this.hidden.has(i)));
      list.children[i].replaceChildren(button);
      list.children[i].classList.remove("off");
      this.buttons.push(button);
      return value;
    });
    if (this.spec.choice) list.prepend(this.choices());
    if (this.spec.cells) list.querySelector(".ramp").append(this.most = element("data"));
    list.append(this.where);
  }

  /// Buttons that show and hide all lines.
  choices() {
    const every = this.spec.lines.map((_, i) => i);
    const button = (words, label, shown) => {
      const made = element("button", { type: "button", "aria-label": `${label}: ${this.spec.title}` }, words);
      made.addEventListener("click", () => this.choose(every, shown));
      return made;
    };
    return element("li", { class: "choices" }, button("all", "Show all lines", true), button("none", "Show none of the lines", false));
  }

  /// Shows or hides lines, here and in the charts with the same choice.
  choose(lines, shown) {
    const { choice } = this.spec;
    const others = choice ? (this.peers ?? []).filter((chart) => chart.spec.choice === choice) : [];
    for (const chart of new Set([this, ...others])) {
      for (const i of lines) {
        shown ? chart.hidden.delete(i) : chart.hidden.add(i);
        chart.buttons[i].setAttribute("aria-pressed", String(shown));
      }
      chart.draw();
    }
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
    // Read once: after another chart was drawn, the question makes the browser lay out the page anew.
    const [width, height] = this.size ??= [this.plot.clientWidth, this.plot.clientHeight || 240];
    if (!width) { this.size = null; return; }
    if (width !== this.right + RIGHT) this.list.style.minHeight = "";
    const [from, to] = this.view ?? this.whole;
    const lines = this.spec.lines.filter((_, i) => !this.hidden.has(i));
    const [low, high] = this.rangeOfY(lines, this.xScale.from(from), this.xScale.from(to));
    const yScale = scales[this.y.scale], bottom = height - BOTTOM;
    const [yLow, yHigh] = [yScale.at(low), yScale.at(high)];
    const yTicks = ticksOf(this.y, low, high, 5).map((v) => [v, tick(this.y, v)]);
    // The minimum aligns most charts below each other.
    const left = Math.max(56, 10 + Math.max(...yTicks.map(([, text]) => text.length)) * 7.2);
    this.left = left;
    this.bottom = bottom;
    this.right = width - RIGHT;
    this.toX = (v) => left + (this.xScale.at(v) - from) / (to - from) * (this.right - left);
    this.toY = (v) => TOP + (1 - (yScale.at(v) - yLow) / (yHigh - yLow)) * (bottom - TOP);
    this.toValue = (px) => this.xScale.from(from + (px - left) / (this.right - left) * (to - from));

    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const id = `clip-${this.figure.dataset.chart}`;
    const clip = shape("clipPath", { id });
    // The margin shows points and intervals at the edge whole.
    clip.append(shape("rect", { x: left - 12, y: 0, width: this.right - left + 24, height: bottom + 4 }));
    const inside = shape("g", { "clip-path": `url(#${id})` });
    const named = []; // above the lines, to be legible
    if (this.spec.cells) drawCells(this, inside, this.spec.cells);
    for (const [start, end, name] of this.spec.spans) {
      const [a, b] = [this.toX(start), this.toX(end)].map((x) => Math.min(Math.max(x, left), this.right));
      if (b - a < 1) continue;
      inside.append(shape("rect", { class: "span", x: a, y: TOP, width: b - a, height: bottom - TOP }));
      if (b - a > name.length * 7) named.push([{ x: a + 4, y: TOP + 13 }, name]);
    }
    // From the last one: it has its name, and of those before each that has room for it.
    let room = this.right;
    for (const [at, name, tone] of (this.spec.marks ?? []).toReversed()) {
      if (at < this.xScale.from(from) || at > this.xScale.from(to)) continue;
      const x = fixed(this.toX(at));
      inside.append(shape("path", { class: tone ? `level ${tone}` : "level", d: `M${x} ${TOP}V${bottom}` }));
      if (room - x < name.length * 7 + 8) continue;
      named.push([{ x: x + 3, y: bottom - 5 }, name]);
      room = x;
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
    const [first, last] = [from, to].map(this.xScale.from);
    for (const line of lines.slice().reverse()) drawLine(this, inside, line, first, last);
    for (const place of pointNames(this, lines, first, last)) named.push(place);
    for (const [attributes, words] of named) inside.append(shape("text", attributes, words));
    this.marks = shape("g", {});
    svg.append(clip, inside, this.marks);
    this.plot.replaceChildren(svg);
    for (const button of this.less) button.disabled = !this.view;
    this.point();
  }

  /// Indices of a line's points in view, with their neighbours outside.
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
    this.spec.cells?.y.forEach(see);
    if (low === Infinity) return this.y.scale === "log" ? [1, 10] : [0, 1];
    if (this.y.scale === "log") return [low / 1.15, high * 1.15];
    const base = Math.min(low, 0);
    return [base * 1.05, high > base ? high + (high - base) * 0.05 : base + 1];
  }

  // --- Cursor and view

  /// Index of the point of a line that is nearest to a value of x; -1 without points.
  nearest(line, x) {
    const i = firstFrom(line.xs, x);
    if (i === 0) return line.xs.length ? 0 : -1;
    if (i === line.xs.length) return i - 1;
    const [before, here, after] = [line.xs[i - 1], x, line.xs[i]].map(this.xScale.at);
    return here - before < after - here ? i - 1 : i;
  }

  /// Line whose points the cursor steps through: the one with most points.
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
      if (this.most) this.most.textContent = "";
      plot.setAttribute("aria-valuetext", "no place chosen; arrow keys choose one");
      return;
    }
    const x = this.toX(cursor);
    if (x >= this.left - 1 && x <= this.right + 1) {
      const d = `M${fixed(x)} ${TOP}V${this.plot.clientHeight - BOTTOM}`;
      this.marks.append(shape("path", { class: "cursor", d }));
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
      const doubt = line.untrusted?.includes(at) ? " not trusted" : "";
      const band = (line.low && !line.own && line.low[at] !== null && line.high[at] !== null
        ? ` [${show(this.y, line.low[at])} \u2013 ${show(this.y, line.high[at])}]` : "") + doubt;
      data.setAttribute("value", value);
      data.textContent = show(this.y, line.own?.[at] ?? value) + band;
      said.push(`${line.name} ${show(this.y, line.own?.[at] ?? value)}${band}`);
      const px = this.toX(line.xs[at]);
      if (px >= this.left - 1 && px <= this.right + 1) {
        const [cx, cy] = [px, this.toY(value)].map(fixed);
        this.marks.append(shape("circle", { class: `dot h${line.hue}`, cx, cy, r: 4 }));
      }
    });
    if (this.most) {
      this.most.textContent = densest(this, this.spec.cells, cursor);
      if (this.most.textContent) said.push(`${this.spec.cells.name} ${this.most.textContent}`);
    }
    this.where.textContent = "at " + show(this.x, cursor);
    // The legend never shrinks: the chart would move away from under the pointer.
    this.list.style.minHeight = `${this.list.offsetHeight}px`;
    plot.setAttribute("aria-valuenow", cursor);
    plot.setAttribute("aria-valuetext", `${show(this.x, cursor)}: ${said.join(", ")}`);
  }

  /// Whether a point is too far from the cursor for its value to be shown.
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

  /// Moves the cursor by a number of points, and the view along with the cursor.
  step(points) {
    const { xs } = this.leader;
    if (!xs.length) return;
    const [from, to] = (this.view ?? this.whole).map(this.xScale.from);
    const outside = points > 0 ? firstFrom(xs, from) - 1 : firstFrom(xs, to) + 1;
    const now = this.cursor === null ? outside : this.nearest(this.leader, this.cursor);
    const x = xs[Math.min(Math.max(now + points, 0), xs.length - 1)];
    if (this.view) {
      const at = this.xScale.at(x), [a, b] = this.view;
      if (at < a) this.setView([at, at + b - a]); else if (at > b) this.setView([at - (b - a), at]);
    }
    this.setCursor(x);
  }
}
