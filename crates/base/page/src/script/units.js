// Text of numbers with their units, in the same form as src/report/page/unit.rs writes them.

const BLANK = "\u00a0";

const apart = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const rate = (v) => v >= 999.5 ? apart(Math.round(v)) : v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1)
  : v === 0 ? "0" : v.toFixed(2);
const trim = (text) => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
const signed = (v) => {
  const m = Math.abs(v);
  const text = m > 0 && m < 0.0995 ? trim(m.toFixed(Math.min(9, 2 - Math.floor(Math.log10(m))))) : rate(m);
  return (v < 0 ? "\u2212" : "") + text;
};
const nines = (q) => -Math.log10(Math.max(1 - q, 1e-9));
const percentile = (q) => trim((q * 100).toFixed(Math.max(0, Math.floor(nines(q) + 1e-9))));
const timeParts = (ms) => {
  const ns = Math.round(ms * 1e6);
  return ns < 1e3 ? [ns, "ns"] : ns < 1e6 ? [ns / 1e3, "us"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
};
const time = (ms) => {
  const [v, unit] = timeParts(ms);
  return v.toFixed(v >= 100 || Number.isInteger(v) ? 0 : v >= 10 ? 1 : 2) + BLANK + unit;
};
const roundTime = (ms) => {
  const [v, unit] = timeParts(ms);
  return trim(v.toFixed(3)) + BLANK + unit;
};
const clock = (s) => {
  const ms = Math.round(s * 1e3), hours = Math.floor(ms / 3.6e6), minutes = Math.floor(ms / 6e4) % 60;
  const seconds = (ms % 6e4) / 1e3, rest = (seconds < 10 ? "0" : "") + trim(seconds.toFixed(3));
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
};
const powers = ["B", "kB", "MB", "GB", "TB"];
const bytes = (v) => {
  let i = 0;
  for (; v >= 999.5 && i < powers.length - 1; i++) v /= 1000;
  return v.toFixed(i === 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2) + BLANK + powers[i];
};
const fraction = (v) => {
  const p = v * 100;
  const text = p <= 0 ? "0" : p >= 100 ? "100" : p < 0.001 ? "<0.001" : p > 99.9 ? ">99.9" : p < 0.0995 ? p.toFixed(3)
    : p < 9.995 ? p.toFixed(2) : p.toFixed(1);
  return text + "%";
};
const round = (v) => {
  const m = Math.abs(v);
  return (v < 0 ? "\u2212" : "") + (m >= 1000 ? apart(Math.round(m)) : trim(m.toFixed(6)));
};
const roundBytes = (v) => {
  const power = Math.min(4, Math.max(0, Math.floor(Math.log10(v) / 3 + 1e-9)));
  return round(v / 1000 ** power) + BLANK + powers[power];
};
const units = {
  count: { show: (v) => Number.isInteger(v) ? apart(v) : rate(v), tick: round },
  per_s: { show: (v) => rate(v) + "/s", tick: round },
  ms: { show: time, tick: roundTime },
  s: { show: (s) => s >= 60 ? clock(s) : time(s * 1e3), tick: (s) => s >= 60 ? clock(s) : roundTime(s * 1e3) },
  fraction: { show: fraction, tick: (v) => round(v * 100) + "%" },
  bytes: { show: bytes, tick: roundBytes },
  quantile: { show: (q) => "p" + percentile(q), tick: (q) => percentile(q) + "%" },
  of: { show: (v, name) => (signed(v) + BLANK + name).trim(), tick: round },
};
const show = (axis, v) => units[axis.unit].show(v, axis.of);
const tick = (axis, v) => v === 0 ? "0" : units[axis.unit].tick(v);
