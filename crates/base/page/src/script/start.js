// Start: a chart for each figure, with the data in the page (`to_json` of src/report/page/chart.rs).

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
