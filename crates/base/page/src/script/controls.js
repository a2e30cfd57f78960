// Keyboard and pointer: cursor, zoom and reset of a chart.

function listenTo(chart) {
  const { plot } = chart;
  const [low, high] = chart.whole.map(chart.xScale.from);
  const attributes = { tabindex: 0, role: "slider", "aria-label": `${chart.spec.title}: place on the chart`,
    "aria-valuemin": low, "aria-valuemax": high, "aria-valuenow": low };
  for (const [key, value] of Object.entries(attributes)) plot.setAttribute(key, value);
  const keys = {
    ArrowLeft: () => chart.step(-1), ArrowRight: () => chart.step(1),
    PageDown: () => chart.step(-Math.ceil(chart.leader.xs.length / 20)),
    PageUp: () => chart.step(Math.ceil(chart.leader.xs.length / 20)),
    Home: () => chart.step(-Infinity), End: () => chart.step(Infinity),
    "+": () => chart.zoom(0.5), "=": () => chart.zoom(0.5), "-": () => chart.zoom(2), 0: () => chart.setView(null),
    Escape: () => { chart.setView(null); chart.setCursor(null); },
  };
  plot.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  const place = (event) => event.clientX - plot.getBoundingClientRect().left;
  let start = null;
  const inside = (px) => Math.min(Math.max(px, chart.left), chart.right);
  const selected = (now) => [Math.min(start, now), Math.max(start, now)].map(inside);
  const look = (px) => {
    const { xs } = chart.leader;
    const i = chart.nearest(chart.leader, chart.toValue(inside(px)));
    if (i >= 0) chart.setCursor(xs[i]);
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
      const [a, b] = selected(now), height = plot.clientHeight - BOTTOM - TOP;
      chart.marks.append(shape("rect", { class: "picked", x: a, y: TOP, width: b - a, height }));
    }
  });
  const end = (event) => {
    if (start === null) return;
    const [a, b] = selected(place(event));
    start = null;
    if (event.type === "pointerup" && b - a > 4) chart.setView([a, b].map((px) => chart.xScale.at(chart.toValue(px))));
    else chart.point();
  };
  plot.addEventListener("pointerup", end);
  plot.addEventListener("pointercancel", end);
  plot.addEventListener("pointerleave", () => {
    if (start === null && document.activeElement !== plot) chart.setCursor(null);
  });
  plot.addEventListener("dblclick", () => chart.setView(null));
  plot.addEventListener("blur", () => chart.setCursor(null));
}
