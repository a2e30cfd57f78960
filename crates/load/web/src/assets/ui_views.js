// Views of the page, chosen by the part of the address behind the token: it can be reloaded, and goes back and forth.

const VIEWS = [["live", "Live"], ["history", "History"], ["new", "New run"]];
const token = () => location.hash.slice(1).split("/")[0];
const place = (...parts) => `#${[token(), ...parts].join("/")}`;
const ui = { mayStart: false, state: null, title: "Load", shown: null };

/// View of the address, with what follows its name.
function placeNow() {
  const [, name, ...rest] = location.hash.slice(1).split("/");
  const known = ["live", "history", "new", "run", "compare"];
  return known.includes(name) && (name !== "new" || ui.mayStart) ? [name, ...rest] : ["live"];
}

/// Chooses the form for an address without a view where there is no run to see.
function land() {
  const [, name] = location.hash.slice(1).split("/");
  if (!name && ui.mayStart && ui.state?.state === "none") history.replaceState(null, "", place("new"));
}

/// Shows the view of the address.
function showPlace() {
  land();
  const [name, ...rest] = placeNow();
  const isDocument = name === "run" || name === "compare";
  byId("live").hidden = name !== "live" || !page.hello;
  byId("history").hidden = name !== "history";
  byId("document").hidden = !isDocument;
  byId("new").hidden = name !== "new";
  byId("state").hidden = name !== "live" || !page.hello;
  showRunState(name === "live");
  const views = VIEWS.filter(([view]) => view !== "new" || ui.mayStart);
  byId("views").replaceChildren(...views.map(([view, words]) => {
    const link = element("a", { href: place(view) }, words);
    if (view === name || (isDocument && view === "history")) link.setAttribute("aria-current", "page");
    return link;
  }));
  const titles = { history: "Saved runs", new: "New run", run: `Run #${rest[0]}`, compare: "Comparison" };
  const title = titles[name] ?? (page.hello ? page.hello.title : "Load");
  byId("title").textContent = title;
  document.title = `${title} \u00b7 weir`;
  const key = [name, ...rest].join("/");
  if (ui.shown === key) return;
  ui.shown = key;
  if (name === "history") showHistory();
  if (name === "new") showForm();
  if (isDocument) showDocument(name, rest);
  if (name === "live") page.charts?.redraw();
}

/// State of the last run, where there is nothing of it to be seen.
function showRunState(isLive) {
  const { state } = ui, section = byId("run-state");
  const isOver = state?.state === "ended";
  section.hidden = !isLive || !state || (page.hello && !isOver);
  if (section.hidden) return;
  const failed = isOver && state.saved === null;
  const words = { none: ["No run yet", ui.mayStart ? "Start one, or open an earlier one." : "A run that is started is shown here."],
    starting: ["Starting", "The run is being set up."], running: ["Starting", "Connecting to the run."],
    ended: failed ? ["The run has not been saved", `weir load has ended with exit code ${state.code ?? "unknown"}.`] : ["The run is over", `Saved as run #${state.saved}.`] }[state.state];
  byId("run-headline").textContent = words[0];
  byId("run-words").textContent = words[1];
  byId("run-command").hidden = !state.command;
  byId("run-command").textContent = state.command;
  byId("run-messages").replaceChildren(...state.messages.map((text) => element("li", {}, text)));
  const buttons = [];
  if (isOver && state.saved !== null) buttons.push(element("a", { href: place("run", state.saved) }, "Open its report"));
  if (state.state === "starting" && ui.mayStart) {
    const stop = element("button", { type: "button" }, "Stop");
    stop.addEventListener("click", () => ask("/api/end", {}));
    buttons.push(stop);
  }
  if (state.state === "none" || isOver) {
    if (ui.mayStart) buttons.push(element("a", { href: place("new") }, "New run"));
    buttons.push(element("a", { href: place("history") }, "History"));
  }
  byId("run-buttons").replaceChildren(...buttons);
}

/// Sends JSON, and returns what comes back; an error has its text.
async function ask(path, value) {
  const headers = { ...authorization(), "Content-Type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(value) }).catch(() => null);
  if (!response) throw new Error("weir is not reached");
  if (!response.ok) throw new Error(await reason(response));
  return response.json();
}

/// Report on a run or a comparison, in a frame that reaches nothing of this page.
async function showDocument(name, rest, force = false) {
  const runs = rest.map(Number), key = ui.shown;
  byId("frame").removeAttribute("src");
  byId("frame").hidden = true;
  byId("document-news").textContent = "";
  const back = element("a", { href: place("history") }, "All runs");
  byId("document-buttons").replaceChildren(back);
  try {
    const { path } = await ask("/api/documents", { runs, force });
    if (ui.shown !== key) return;
    byId("frame").src = path;
    byId("frame").hidden = false;
    byId("document-buttons").append(element("a", { href: path, target: "_blank", rel: "noopener" }, "In a tab of its own"));
    if (name === "run" && ui.mayStart) {
      const again = element("button", { type: "button" }, "Run it again");
      again.addEventListener("click", () => fillFrom(runs[0]));
      byId("document-buttons").append(again);
    }
  } catch (error) {
    if (ui.shown !== key) return;
    const mayForce = error.message.includes("--force");
    byId("document-news").textContent = error.message.replace(/; --force .*/, "");
    if (!mayForce) return;
    const anyway = element("button", { type: "button" }, "Compare them anyway");
    anyway.addEventListener("click", () => showDocument(name, rest, true));
    byId("document-buttons").append(anyway);
  }
}
