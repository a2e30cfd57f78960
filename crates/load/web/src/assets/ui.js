// Start: the live view is there already; this adds the others.

import { authorization, byId, figureOf, forgetRun, page, reason } from "/live.js";
import { Chart, element } from "/charts.js";

byId("live").before(byId("run-state"));
page.onHello = showPlace;
page.onRun = (state) => {
  const isNew = ui.state && ui.state.number !== state.number;
  ui.state = state;
  if (isNew) forgetRun();
  if (state.state === "ended") {
    page.controls?.end();
    if (placeNow()[0] === "history") refreshHistory();
  }
  showPlace();
};
addEventListener("hashchange", showPlace);

const response = await fetch("/api/options", { headers: authorization() }).catch(() => null);
if (response?.ok) {
  const { may_start, groups } = await response.json();
  Object.assign(ui, { mayStart: may_start, groups });
}
showPlace();
