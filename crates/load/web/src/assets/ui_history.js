// Saved runs: filtered, chosen, opened, compared.

const chosen = new Set();
let asked = 0;

function showHistory() {
  refreshHistory();
}

/// Reads runs and trends of the filter; only the last one that was asked for is shown.
async function refreshHistory() {
  const query = { target: byId("by-target").value.trim(), label: byId("by-label").value.trim(), commit: byId("by-commit").value.trim() };
  const number = ++asked;
  try {
    const { runs, max } = await ask("/api/runs", query);
    if (number !== asked) return;
    listRuns(runs);
    const isFiltered = Object.values(query).some((text) => text);
    byId("history-news").textContent = runs.length === max ? `The last ${max} runs.` : runs.length ? `${runs.length} run${runs.length === 1 ? "" : "s"}.`
      : isFiltered ? "No run passes the filter." : "No saved runs yet: those that are started here are saved, and so are those of weir load --save.";
    const { groups } = await ask("/api/trends", query);
    if (number === asked) showTrends(groups);
  } catch (error) {
    if (number === asked) byId("history-news").textContent = error.message;
  }
}

function listRuns(runs) {
  byId("runs-scroll").hidden = !runs.length;
  const known = new Set(runs.map((run) => run.run));
  for (const id of chosen) if (!known.has(id)) chosen.delete(id);
  const names = runs[0]?.shown.figures.map(([name]) => name) ?? [];
  const heading = (words, isNumber) => element("th", { scope: "col", ...(isNumber ? { class: "n" } : {}) }, words);
  byId("runs").tHead.replaceChildren(element("tr", {}, element("td"), heading("run"), heading("started (UTC)"),
    ...names.map((name) => heading(name, true)), heading("commit"), heading("label"), heading("")));
  const columns = 6 + names.length, rows = [];
  let plan = null;
  for (const run of runs) {
    const own = `${run.plan}; ${run.machine}`;
    if (own !== plan) {
      plan = own;
      rows.push(element("tr", { class: "group" }, element("th", { scope: "rowgroup", colspan: columns }, own)));
    }
    rows.push(rowOf(run));
  }
  byId("runs").tBodies[0].replaceChildren(...rows);
  // A heading without words is none.
  byId("runs").tHead.rows[0].lastChild.textContent = "result";
  showChosen(runs);
}

function rowOf(run) {
  const box = element("input", { type: "checkbox", "aria-label": `Choose run #${run.run}` });
  box.checked = chosen.has(run.run);
  box.addEventListener("change", () => {
    box.checked ? chosen.add(run.run) : chosen.delete(run.run);
    showChosen();
  });
  const row = element("tr", {}, element("td", {}, box), element("th", { scope: "row" }, element("a", { href: place("run", run.run) }, `#${run.run}`)),
    element("td", {}, run.shown.started), ...run.shown.figures.map(([, text]) => element("td", { class: "n" }, text)),
    element("td", {}, run.commit.slice(0, 13)), element("td", {}, run.label), element("td", { class: "verdict-word" }, run.shown.verdict));
  row.dataset.run = run.run;
  return row;
}

function showChosen() {
  const button = byId("compare");
  button.disabled = chosen.size < 2;
  button.textContent = chosen.size < 2 ? "Compare" : `Compare ${chosen.size} runs`;
}

byId("compare").addEventListener("click", () => {
  // The list has the last one first.
  const order = [...document.querySelectorAll("#runs tr[data-run]")].map((row) => Number(row.dataset.run)).reverse();
  location.hash = place("compare", ...order.filter((id) => chosen.has(id)));
});
byId("filter").addEventListener("submit", (event) => event.preventDefault());
let filterTimer;
byId("filter").addEventListener("input", () => {
  clearTimeout(filterTimer);
  filterTimer = setTimeout(refreshHistory, 200);
});
