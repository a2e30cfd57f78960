// Form of a new run: the options of the command line, and the command line and TOML that they stand for.

const LOADS = [["rate", "open loop, requests/s"], ["stages", "open loop, stages"], ["users", "closed loop, users"], ["connections", "closed loop, connections"]];
const MAIN = ["scenario", "duration", "warmup", "method", "header", "body", "slo"];
const HINTS = { rate: "50", stages: "0-200/30s,200/1m", users: "10", connections: "50", duration: "10s", slo: "p99<200ms", header: "Name: value", warmup: "0s", method: "GET" };
const WORDS = { slo: "objectives", warmup: "warm-up", scenario: "scenario or script", header: "headers" };
const form = { fields: new Map(), isBuilt: false, preview: 0, timer: null };

function showForm() {
  if (!form.isBuilt) buildForm();
  preview();
}

function buildForm() {
  form.isBuilt = true;
  const options = ui.groups.flatMap((group) => group.options), named = (name) => options.find((option) => option.name === name);
  const url = element("input", { id: "url", type: "text", inputmode: "url", spellcheck: "false", placeholder: "http://localhost:8080/" });
  const load = element("select", { id: "load-kind", "aria-label": "Kind of load" }, ...LOADS.map(([name, words]) => element("option", { value: name }, words)));
  const level = element("input", { id: "load-level", type: "text", spellcheck: "false", "aria-label": "Load", placeholder: HINTS.rate });
  load.addEventListener("change", () => { level.placeholder = HINTS[load.value]; });
  Object.assign(form, { url, load, level, label: element("input", { id: "run-label", type: "text", spellcheck: "false" }) });
  const main = byId("main-fields");
  main.append(field("URL", url, "Or a scenario with hosts of its own.", true),
    element("div", { class: "field" }, element("span", { class: "label" }, "load"), element("div", { class: "pair" }, load, level), element("small", {}, "Without a value: 50 connections.")));
  for (const name of MAIN) if (named(name)) main.append(optionField(named(name)));
  main.append(field("label", form.label, "For the history, e.g. the branch."));
  const loads = LOADS.map(([name]) => name);
  for (const { name, options: all } of ui.groups) {
    const rest = all.filter((option) => !MAIN.includes(option.name) && !loads.includes(option.name));
    if (!rest.length) continue;
    byId("more-fields").append(element("details", {}, element("summary", {}, name), element("div", { class: "fields" }, ...rest.map(optionField))));
  }
  byId("form").addEventListener("input", () => { clearTimeout(form.timer); form.timer = setTimeout(preview, 150); });
  byId("form").addEventListener("submit", (event) => { event.preventDefault(); startRun(); });
}

function field(name, input, help, isWide) {
  const label = element("label", { for: input.id }, name);
  return element("div", { class: isWide ? "field wide-field" : "field" }, label, input, element("small", {}, help ?? ""));
}

/// Field of an option, in the shape of its value.
function optionField(option) {
  const id = `option-${option.name}`, { name } = option;
  let input, shown;
  if (option.is_switch) {
    input = element("input", { id, type: "checkbox" });
    shown = element("div", { class: "field" }, element("div", { class: "switch-field" }, input, element("label", { for: id }, name)), element("small", {}, option.help ?? ""));
  } else {
    const choices = option.choices.length ? [["", ""], ...option.choices.map((choice) => [choice, choice])] : null;
    const isLong = option.is_repeatable || option.is_long;
    input = choices ? element("select", { id }, ...choices.map(([value, words]) => element("option", { value }, words)))
      : isLong ? element("textarea", { id, rows: option.is_long ? 2 : 1, spellcheck: "false" }) : element("input", { id, type: "text", spellcheck: "false" });
    if (!choices) input.placeholder = HINTS[name] ?? option.value;
    shown = field(WORDS[name] ?? name, input, (option.help ?? "") + (option.is_repeatable ? ` (one${option.is_file ? " file" : ""} per line)` : ""));
    if (option.is_file || option.is_long) shown.append(uploadField(option, input));
    if (option.is_optional) {
      const on = element("input", { id: `${id}-on`, type: "checkbox" });
      shown.append(element("div", { class: "switch-field" }, on, element("label", { for: on.id }, "without a value")));
      form.fields.set(`${name} on`, on);
    }
  }
  shown.dataset.option = name;
  form.fields.set(name, input);
  Object.assign(input, { option });
  return shown;
}

function uploadField(option, input) {
  const file = element("input", { type: "file", class: "file", "aria-label": `Upload a file for ${option.name}` });
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    try {
      const path = await upload(file.files[0]);
      const value = option.is_long ? `@${path}` : path;
      input.value = option.is_repeatable && input.value.trim() ? `${input.value.trimEnd()}\n${value}` : value;
      preview();
    } catch (error) {
      showProblem(error.message);
    }
    file.value = "";
  });
  return file;
}

/// Uploads a file; returns the path by which options name it.
async function upload(file) {
  const name = file.name.replaceAll(/[^A-Za-z0-9._-]/g, "-").replace(/^[.-]+/, "");
  const response = await fetch(`/api/files?name=${name}`, { method: "POST", headers: authorization(), body: file }).catch(() => null);
  if (!response) throw new Error("weir is not reached");
  if (!response.ok) throw new Error(await reason(response));
  return (await response.json()).path;
}

/// The form as the server reads it.
function readForm() {
  const options = [];
  if (form.level.value.trim()) options.push([form.load.value, form.level.value.trim()]);
  for (const [name, input] of form.fields) {
    if (!input.option) { if (input.checked && !form.fields.get(name.split(" ")[0]).value) options.push([name.split(" ")[0], null]); continue; }
    if (input.option.is_switch) { if (input.checked) options.push([name, null]); continue; }
    const values = input.option.is_repeatable ? input.value.split("\n").map((line) => line.trim()) : [input.option.is_long ? input.value : input.value.trim()];
    for (const value of values) if (value) options.push([name, value]);
  }
  return { url: form.url.value.trim(), options, label: form.label.value.trim() };
}

function showProblem(words) {
  byId("problem").className = words ? "bad" : "";
  byId("problem").textContent = words ?? "";
}

async function preview() {
  const number = ++form.preview, read = readForm();
  try {
    const shown = await ask("/api/preview", read);
    if (number !== form.preview) return;
    byId("command").textContent = shown.command;
    const isEmpty = !read.url && !read.options.length;
    showProblem(isEmpty ? null : shown.problem);
    byId("toml-note").textContent = shown.no_toml ? `None: ${shown.no_toml}.` : "weir load -s mix.toml applies the same load.";
    byId("toml-box").hidden = !shown.toml;
    byId("toml").textContent = shown.toml ?? "";
    byId("request-box").hidden = !shown.request;
    byId("request").textContent = shown.request ?? "";
  } catch (error) {
    if (number === form.preview) showProblem(error.message);
  }
}

async function startRun() {
  byId("start").disabled = true;
  try {
    await ask("/api/start", readForm());
    location.hash = place("live");
  } catch (error) {
    showProblem(error.message);
  }
  byId("start").disabled = false;
}

/// Fills the form with the options of a saved run.
async function fillFrom(run) {
  try {
    const { url, options, label } = await ask("/api/form", run);
    if (!form.isBuilt) buildForm();
    byId("form").reset();
    form.url.value = url;
    form.label.value = label;
    for (const [name, value] of options) {
      const input = form.fields.get(name);
      if (LOADS.some(([load]) => load === name)) { form.load.value = name; form.level.value = value; }
      else if (input?.option.is_switch) input.checked = true;
      else if (input && value === null) form.fields.get(`${name} on`).checked = true;
      else if (input) input.value = input.option.is_repeatable && input.value ? `${input.value}\n${value}` : value;
    }
    form.level.placeholder = HINTS[form.load.value];
    location.hash = place("new");
  } catch (error) {
    byId("document-news").textContent = error.message;
  }
}

for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", async () => {
    const text = byId(button.dataset.of);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      // Without a secure context: chosen, to be copied by key.
      getSelection().selectAllChildren(text);
      button.textContent = "Chosen";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
