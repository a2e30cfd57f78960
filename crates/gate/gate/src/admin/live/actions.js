// What an operator may change from the page: by the requests that any operator sends, after a question.

/// Whether the gateway takes changes from this page: it cannot tell one that was opened by a name from a foreign one.
const mayChange = /^(\d+\.\d+\.\d+\.\d+|\[.*\]|localhost)$/.test(location.hostname);

const QUESTIONS = {
  drain: () => ["Drain the gateway?", "Readiness says no from now on, so that load balancers send no further calls. Calls that come are served all the same.", "Drain"],
  undrain: () => ["End draining?", "Readiness says yes again.", "End draining"],
  eject: (upstream, host) => [`Eject ${host}?`, `The host of upstream ${upstream} gets no attempts until it is restored, or a health check of it succeeds.`, "Eject"],
  restore: (upstream, host) => [`Restore ${host}?`, `The host of upstream ${upstream} gets attempts again, whatever it was ejected for.`, "Restore"],
};

function requestOf(action, upstream, host) {
  if (action === "drain") return ["drain", "POST"];
  if (action === "undrain") return ["drain", "DELETE"];
  return [`upstreams/${encodeURIComponent(upstream)}/${action}?host=${encodeURIComponent(host)}`, "POST"];
}

class Actions {
  /// `done` is called after each change.
  constructor(done) {
    Object.assign(this, { dialog: byId("question"), done, chosen: null });
    byId("cancel").addEventListener("click", () => this.dialog.close());
    byId("confirm").addEventListener("click", () => {
      this.dialog.close();
      this.send(...this.chosen);
    });
    byId("drain").hidden = !mayChange;
    byId("drain").addEventListener("click", () => this.ask(byId("drain").dataset.action));
    byId("by-name").hidden = mayChange;
  }

  ask(...chosen) {
    const [action, ...of] = chosen;
    const [heading, sentence, words] = QUESTIONS[action](...of);
    this.chosen = chosen;
    byId("question-heading").textContent = heading;
    byId("question-text").textContent = sentence;
    byId("confirm").textContent = words;
    this.dialog.showModal();
    // Return in a hurry must not change anything.
    byId("cancel").focus();
  }

  async send(...chosen) {
    const [url, method] = requestOf(...chosen);
    let error = null;
    try {
      const response = await fetch(url, { method, signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (!response.ok) error = `${response.status}: ${(await response.text()).trim()}`;
    } catch {
      error = "the gateway is not reachable; whether it has changed anything is not known";
    }
    const [action, , host] = chosen;
    byId("answer").className = error ? "bad" : "";
    byId("answer").textContent = error ?? { drain: "The gateway drains.", undrain: "The gateway is ready again.", eject: `${host} is ejected.`, restore: `${host} is restored.` }[action];
    this.done();
  }

  show({ draining }) {
    byId("drain").dataset.action = draining ? "undrain" : "drain";
    setText(byId("drain"), draining ? "End draining\u2026" : "Drain\u2026");
  }
}
