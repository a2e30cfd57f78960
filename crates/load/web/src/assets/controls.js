// Form by which the load is changed: number and slider, pause, stop.

class Controls {
  constructor() {
    const get = (id) => document.getElementById(id);
    Object.assign(this, { form: get("controls"), level: get("level"), slider: get("slider"), pause: get("pause"), stop: get("stop"), answer: get("answer") });
    this.slider.addEventListener("input", () => { this.level.value = this.ofSlider(); this.touched = true; });
    this.slider.addEventListener("change", () => this.set());
    this.level.addEventListener("input", () => { this.touched = true; });
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.set(); });
    this.pause.addEventListener("click", () => this.send(this.isPaused ? "resume" : "pause"));
    this.stop.addEventListener("click", () => this.send("stop"));
  }

  /// Shows the form for a run.
  begin(kind) {
    // The times of a log can only be stopped.
    const changes = [this.level, this.slider, this.pause, byId("set"), byId("level-name"), byId("level-unit")];
    changes.forEach((one) => { one.hidden = kind === "log"; });
    byId("level-name").textContent = kind;
    byId("level-unit").textContent = kind === "rate" ? "requests/s" : "";
    [this.level.min, this.level.step] = kind === "rate" ? [0, "any"] : [1, 1];
    this.form.hidden = false;
    this.answer.textContent = "";
    Object.assign(this, { kind, highest: 0, touched: false });
  }

  /// Level of the slider: from nothing to twice the highest, in steps of a percent.
  ofSlider() {
    const level = this.slider.value / 100 * this.highest;
    return this.kind === "rate" ? Number(level.toPrecision(3)) : Math.max(1, Math.round(level));
  }

  set() {
    const level = Number(this.level.value);
    this.send(this.kind === "rate" ? { rate: level } : { users: Math.round(level) });
  }

  async send(what) {
    this.answer.className = "";
    this.answer.textContent = "\u2026";
    const error = await change(what);
    this.touched = false;
    this.answer.className = error ? "bad" : "";
    const [[name, level]] = typeof what === "string" ? [[what, ""]] : Object.entries(what);
    this.answer.textContent = error ?? (level === "" ? { pause: "paused", resume: "resumed", stop: "stopping" }[name] : `${this.kind} set to ${level}`);
  }

  /// Shows the load as it is, but not over what is being typed.
  show(load) {
    this.isPaused = load.is_paused;
    this.pause.textContent = load.is_paused ? "Resume" : "Pause";
    const peak = Math.max(load.level, ...load.stages.flatMap(([from, to]) => [from, to]));
    this.highest = Math.max(this.highest, peak * 2);
    if (this.touched || document.activeElement === this.level || document.activeElement === this.slider) return;
    if (!load.is_paused) {
      this.level.value = Number(load.level.toPrecision(4));
      this.slider.value = Math.round(load.level / this.highest * 100);
    }
  }

  end() {
    this.form.hidden = true;
  }
}
