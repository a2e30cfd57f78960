// A chart whose lines grow while the page is open.

/// Figure of a chart, before its lines are drawn.
function figureOf(title, note, lines, number) {
  const legend = element("ul", { class: "legend" });
  lines.forEach(({ name, hue }) => legend.append(element("li", { class: `h${hue}` }, element("i"), name)));
  const caption = element("figcaption", {}, element("h3", {}, title), element("p", {}, note));
  const figure = element("figure", { class: "chart" }, caption, legend, element("div", { class: "plot" }));
  figure.dataset.chart = number;
  return figure;
}

class LiveChart extends Chart {
  /// Figure and chart, at the end of a place; `choose` is called with a range of the axis, or null.
  static grow(place, { title, note, axes, lines }, peers, choose) {
    const figure = figureOf(title, note, lines, peers.length);
    place.append(figure);
    const spec = { title, axes, lines: lines.map((line) => ({ ...line, xs: [], y: [] })), levels: [], spans: [], marks: [], group: "time" };
    const chart = new this(figure, spec, peers);
    chart.chosen = choose;
    // A chart out of sight is drawn when it comes into it.
    new IntersectionObserver((entries) => {
      chart.isSeen = entries[entries.length - 1].isIntersecting;
      if (chart.isSeen) chart.draw();
    }).observe(figure);
    peers.push(chart);
    return chart;
  }

  /// Takes new points, and the whole range; a range that was chosen stays.
  show(values, whole, extra) {
    this.spec.lines.forEach((line, i) => Object.assign(line, values[i]));
    Object.assign(this.spec, extra);
    this.whole = whole;
    this.plot.setAttribute("aria-valuemin", whole[0]);
    this.plot.setAttribute("aria-valuemax", whole[1]);
    if (this.cursor === null) this.plot.setAttribute("aria-valuenow", whole[0]);
    if (this.isSeen) this.draw();
  }

  setView(view) {
    super.setView(view);
    this.chosen?.(this.view);
  }
}
