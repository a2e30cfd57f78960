// Tables of the page. Rows are found again by their keys, so that a button keeps the keyboard while numbers change.

const byId = (id) => document.getElementById(id);
const NONE = "\u2013";
const perSecond = (v) => v === null ? NONE : units.per_s.show(v);
const share = (v) => v === null ? NONE : units.fraction.show(v);
const ratio = (part, all) => share(part === null || !all ? null : Math.min(1, part / all));
const quantile = (found) => found === null ? NONE : (found.isOver ? "over " : "") + units.ms.show(found.ms);

/// Text of an element, written only if it is another: the layout of what stays is not done again.
function setText(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

/// A cell: text, a number, a small line, or a button.
const text = (words, tone = "") => ({ kind: "text", words, tone });
const number = (words, tone = "") => ({ kind: "n", words, tone });
const spark = (line, hue = 0) => ({ kind: "spark", line, hue });
const button = (words, label, act) => ({ kind: "act", words, label, act });

function fillCell(node, cell, window) {
  switch (cell.kind) {
    case "spark":
      if (!node.firstChild) node.append(sparkline(cell.hue));
      node.firstChild.firstChild.setAttribute("d", sparkPath(cell.line, window));
      break;
    case "act":
      if (!node.firstChild) {
        node.append(element("button", { type: "button" }));
        node.firstChild.addEventListener("click", () => node.act?.());
      }
      node.act = cell.act;
      setText(node.firstChild, cell.words);
      node.firstChild.setAttribute("aria-label", cell.label);
      node.firstChild.hidden = !cell.act;
      break;
    default:
      setText(node, cell.words);
      node.className = [cell.kind === "n" ? "n" : "", cell.tone].filter(Boolean).join(" ");
  }
}

/// Rows of a table in place of those before: pairs of a key and cells, of which the first is a heading.
function fillTable(id, rows, window) {
  byId(`${id}-section`).hidden = !rows.length;
  const body = byId(id).tBodies[0];
  const known = new Map(Array.from(body.rows, (line) => [line.dataset.key, line]));
  rows.forEach(([key, cells], at) => {
    const line = known.get(key) ?? element("tr", {}, ...cells.map((_, i) => element(i ? "td" : "th", i ? {} : { scope: "row" })));
    line.dataset.key = key;
    known.delete(key);
    if (body.rows[at] !== line) body.insertBefore(line, body.rows[at] ?? null);
    cells.forEach((cell, i) => fillCell(line.cells[i], cell, window));
  });
  for (const line of known.values()) line.remove();
}

function showFigures(history) {
  const { calls, draining } = history.state;
  const all = (name) => history.rate("all", name);
  const bad = (v, tone) => v > 0 ? tone : "";
  const won = (extra, name) => all(extra) > 0 ? `${ratio(all(name), all(extra))} won` : "";
  const [failed, late, rejected] = ["failed", "deadline_exceeded", "rejected"].map(all);
  const figures = [["calls", perSecond(all("calls")), draining ? "draining" : "", draining ? "doubt" : ""], ["succeeded", ratio(all("succeeded"), all("calls")), perSecond(all("succeeded")), ""],
    ["failed", perSecond(failed), "", bad(failed, "bad")], ["deadline exceeded", perSecond(late), "", bad(late, "bad")],
    ["rejected", perSecond(rejected), "", bad(rejected, "doubt")],
    ["p50", quantile(history.quantile(0.5, "all")), "", ""], ["p99", quantile(history.quantile(0.99, "all")), "", ""],
    ["in flight", units.count.show(calls.in_flight), "", ""], ["retries", perSecond(all("retried")), won("retried", "retries won"), ""],
    ["hedges", perSecond(all("hedged")), won("hedged", "hedges won"), ""]];
  figures.forEach(([name, value, note, tone], i) => {
    const figure = byId("figures").children[i] ?? byId("figures").appendChild(element("div", {}, element("dt"), element("dd", {}, element("data"), element("span"))));
    figure.dataset.name = name;
    figure.className = tone;
    setText(figure.firstChild, name);
    setText(figure.lastChild.firstChild, value);
    setText(figure.lastChild.lastChild, note);
  });
}

function showTables(history, now, ask) {
  const { state } = history, window = [history.from(now), now];
  const toned = (v, tone) => number(perSecond(v), v > 0 ? tone : "");
  fillTable("routes", state.routes.map(({ name, retry_budget_remaining: budget }) => {
    const rate = (of) => history.rate("route", name, of);
    return [keyOf(name), [text(name), number(perSecond(rate("calls"))), spark(history.rates("route", name, "calls")),
      number(ratio(rate("succeeded"), rate("calls"))), toned(rate("failed"), "bad"), toned(rate("deadline_exceeded"), "bad"),
      toned(rate("rejected"), "doubt"), number(perSecond(rate("client_closed"))), number(quantile(history.quantile(0.5, "route", name))),
      number(quantile(history.quantile(0.99, "route", name))), number(budget === null ? NONE : units.count.show(budget), budget === 0 ? "doubt" : "")]];
  }), window);
  fillTable("local", state.local_routes.map(({ name, responses }) =>
    [keyOf(name), [text(name), number(perSecond(history.rate("local", name))), spark(history.rates("local", name)), number(units.count.show(responses))]]), window);
  fillTable("rejected", state.routes.flatMap(({ name, rejected }) => rejected.map(({ upstream, reason, priority, count }) => {
    const of = ["rejected", name, upstream, reason, priority];
    return [keyOf(...of), [text(wordsOf(reason)), text(name), text(upstream), text(priority), toned(history.rate(...of), "doubt"), spark(history.rates(...of), 4), number(units.count.show(count))]];
  })), window);
  fillTable("callers", (state.rejected_callers ?? []).map(({ route, caller, reason, rejected }) =>
    [keyOf(route, caller), [text(caller), text(route), number(units.count.show(rejected), "doubt"), text(wordsOf(reason))]]), window);
  fillTable("upstreams", state.upstreams.map(({ name, in_flight, circuit, throttled_fraction, panicking }) => {
    const rate = (...of) => history.rate("upstream", name, ...of);
    const failed = history.fraction(["upstream", name, "ended", "failed"], ["upstream", name, "ended", "won"]);
    const guards = [circuit && circuit !== "closed" ? `circuit ${circuit}` : "", throttled_fraction > 0 ? `${share(throttled_fraction)} throttled` : "", panicking ? "panic: too few healthy hosts" : ""];
    return [keyOf(name), [text(name), number(perSecond(rate("attempts"))), spark(history.rates("upstream", name, "attempts")), number(share(failed), failed > 0 ? "bad" : ""),
      number(units.count.show(in_flight)), number(perSecond(rate("retried"))), number(perSecond(rate("retries", "won"))), number(perSecond(rate("hedged"))), number(perSecond(rate("hedges", "won"))),
      number(quantile(history.quantile(0.5, "upstream", name))), number(quantile(history.quantile(0.99, "upstream", name))),
      text(guards.filter(Boolean).join(", ") || "normal", guards.some(Boolean) ? "bad" : "")]];
  }), window);
  fillTable("failures", state.upstreams.flatMap(({ name, failures }) => Object.entries(failures).map(([kind, count]) =>
    [keyOf(name, kind), [text(kind), text(name), toned(history.rate("failure", name, kind), "bad"), spark(history.rates("failure", name, kind), "bad"), number(units.count.show(count))]])), window);
  fillTable("hosts", state.upstreams.flatMap(({ name, hosts }) => hosts.map((host) => hostRow(history, name, host, ask))), window);
  fillTable("limits", state.limits.map((limit) => {
    const [kind, name] = limitOf(limit);
    const { in_flight, queue_length, gradient, shed_threshold: threshold } = limit;
    return [keyOf(kind, name), [text(`${kind} ${name}`), number(units.count.show(limit.limit)), number(units.count.show(in_flight)), number(units.count.show(queue_length), queue_length > 0 ? "doubt" : ""),
      number(gradient === null ? "fixed" : gradient.toFixed(2)), number(threshold.toFixed(2), threshold > 0 ? "doubt" : "")]];
  }), window);
  showCalls(state.calls);
}

const CONDITIONS = { healthy: ["healthy", "good"], probed: ["probed after an ejection", "doubt"], ejected_outlier: ["ejected by outlier detection", "bad"],
  ejected_operator: ["ejected by an operator", "bad"], unhealthy: ["unhealthy by its checks", "bad"] };

function hostRow(history, upstream, { host, condition, ejection_left_s: left, in_flight }, ask) {
  const of = (what) => ["host", upstream, host, what];
  const [words, tone] = CONDITIONS[condition] ?? [condition, ""];
  const [succeeded, failed] = [history.rate(...of("succeeded")), history.rate(...of("failed"))];
  const isOut = condition !== "healthy";
  const act = isOut ? ["restore", "Restore"] : ["eject", "Eject"];
  return [keyOf(upstream, host), [text(host), text(upstream), text(left === null ? words : `${words}, ${units.s.show(Math.ceil(left))} left`, tone), number(units.count.show(in_flight)),
    number(succeeded === null || failed === null ? NONE : perSecond(succeeded + failed)), number(share(history.fraction(of("failed"), of("succeeded"))), failed > 0 ? "bad" : ""),
    spark(history.rates(...of("failed")), "bad"), button(act[1], `${act[1]} ${host} of ${upstream}`, ask && (() => ask(act[0], upstream, host)))]];
}

function showCalls({ in_flight, oldest }) {
  fillTable("calls", oldest.map((call, i) => [String(i), [number(units.ms.show(call.age_ms)), text(wordsOf(call.stage)), text(`${call.method} ${call.target}`), text(call.route ?? NONE), text(call.client)]]));
  setText(byId("calls-note"), in_flight > oldest.length ? `The oldest ${oldest.length} of ${units.count.show(in_flight)}.` : "All of them, the oldest first.");
}
