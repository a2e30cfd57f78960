// Scales and ticks of an axis, by the rules of src/report/axis/.

const scales = {
  linear: { at: (v) => v, from: (p) => p },
  log: { at: (v) => Math.log10(Math.max(v, Number.MIN_VALUE)), from: (p) => 10 ** p },
  tail: { at: nines, from: (p) => 1 - 10 ** -p },
};
const within = (low, high) => (v) => v >= low - Math.abs(low) * 1e-9 && v <= high + Math.abs(high) * 1e-9;
/// Round step at or above a raw one: 1, 2 or 5 times a power of ten.
function roundStep(raw) {
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= raw * 0.999);
}
function evenTicks(low, high, wanted) {
  const raw = (high - low) / Math.max(1, wanted);
  return raw > 0 && Number.isFinite(raw) ? multiples(low, high, roundStep(raw)) : [low];
}
/// Steps that divide minutes, hours or days.
function clockTicks(low, high, wanted) {
  const raw = (high - low) / Math.max(1, wanted);
  const step = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200].find((s) => s >= raw * 0.999);
  return multiples(low, high, step ?? Math.ceil(raw / 86400) * 86400);
}
function multiples(low, high, step) {
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.min(100, Math.max(0, last - first + 1)) }, (_, i) => (first + i) * step);
}
function logTicks(low, high, wanted) {
  const all = (steps) => {
    const found = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
      for (const m of steps) found.push(m * 10 ** p);
    }
    return found.filter(within(low, high));
  };
  // From fine to coarse.
  const ticks = [[1, 2, 5], [1, 3]].map(all).find((ticks) => ticks.length <= wanted * 1.5) ?? all([1]);
  return ticks.length > 2 ? ticks : evenTicks(low, high, wanted);
}
function tailTicks(low, high, wanted) {
  const ticks = [0, 0.5, ...Array.from({ length: 8 }, (_, i) => 1 - 10 ** -(i + 1))].filter(within(low, high));
  return ticks.length > 2 ? ticks : evenTicks(low, high, wanted);
}
const ticksOf = ({ scale, unit, marked }, low, high, wanted) => {
  // Values that were chosen, e.g. of a swept parameter, rather than round ones.
  const chosen = (marked ?? []).filter(within(low, high));
  if (chosen.length > 1) return chosen;
  const ticks = (scale === "log" ? logTicks : scale === "tail" ? tailTicks
    : unit === "s" && high - low > 8 * wanted ? clockTicks : evenTicks)(low, high, wanted);
  // Counts are whole.
  return unit === "count" && high - low >= 1 ? ticks.filter(Number.isInteger) : ticks;
};
