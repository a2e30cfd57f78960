// Trends of saved runs, with their changes, as weir trend finds them.

const MAX_GROUPS = 20;

function showTrends(groups) {
  const shown = groups.filter(({ runs }) => runs > 1).sort((a, b) => b.runs - a.runs).slice(0, MAX_GROUPS);
  byId("trends").replaceChildren(...shown.map(({ heading }) => element("section", {}, element("h3", {}, heading[0]), ...heading.slice(1).map((line) => element("p", { class: "help" }, line)),
    element("div", { class: "plots" }))));
  if (!shown.length) byId("trends").append(element("p", { class: "help" }, "A trend needs two runs of the same load on the same kind of machine."));
  shown.forEach((group, at) => {
    const plots = byId("trends").children[at].querySelector(".plots");
    const peers = [];
    for (const trend of group.trends) plots.append(trendFigure(group, trend, peers));
  });
}

function trendFigure({ points }, trend, peers) {
  const placeOf = new Map(points.map(([id], at) => [id, at + 1]));
  const xs = trend.values.map(([id]) => placeOf.get(id)), y = trend.values.map(([, value]) => value);
  const changes = trend.changes.map(({ run }) => [placeOf.get(run), `#${run}`]);
  const lines = [{ name: trend.metric, hue: 0, xs, y }];
  if (changes.length) lines.push({ name: "level", hue: 1, ...levelsOf(xs, y, changes.map(([x]) => x)) });
  const note = trend.changes.length ? "" : "No change.";
  const figure = figureOf(trend.metric, note, lines, `trend-${trend.metric}-${points[0]?.[0]}`);
  const axes = [{ name: "runs in their order", unit: "count", scale: "linear" }, { name: trend.metric, unit: trend.axis, scale: "linear" }];
  const chart = new Chart(figure, { title: trend.metric, axes, lines, levels: [], spans: [], marks: changes, group: "trend" }, peers);
  peers.push(chart);
  const items = trend.changes.map(({ run, previous_run: before }, i) => element("li", {}, `${trend.sentences[i]} `,
    element("a", { href: place("compare", before, run) }, `compare #${before} with #${run}`)));
  if (items.length) figure.append(element("ul", { class: "changes" }, ...items));
  return figure;
}

/// Mean between changes, as steps.
function levelsOf(xs, y, changes) {
  const steps = { xs: [], y: [] };
  const edges = [0, ...changes.map((x) => xs.indexOf(x)), xs.length];
  for (let i = 0; i + 1 < edges.length; i++) {
    const own = y.slice(edges[i], edges[i + 1]);
    if (!own.length) continue;
    const mean = own.reduce((sum, value) => sum + value, 0) / own.length;
    steps.xs.push(xs[edges[i]], xs[edges[i + 1] - 1]);
    steps.y.push(mean, mean);
  }
  return steps;
}
