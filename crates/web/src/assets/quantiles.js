import { Chart, element, shape, firstFrom, units } from "/charts.js";
// Times with their numbers, merged and summed up. Any percentile of any range is that of its histogram, as weir's own.

/// Flat pairs (time, number) from the wire, where times are distances.
function unpackTimes(flat) {
  const times = new Float64Array(flat.length);
  for (let i = 0, time = 0; i < flat.length; i += 2) {
    time += flat[i];
    times[i] = time;
    times[i + 1] = flat[i + 1];
  }
  return times;
}

/// Sum of two ascending lists of pairs.
function mergeTimes(a, b) {
  if (!a.length) return b;
  if (!b.length) return a;
  const sum = new Float64Array(a.length + b.length);
  let i = 0, j = 0, k = 0;
  while (i < a.length || j < b.length) {
    if (j >= b.length || (i < a.length && a[i] < b[j])) { sum[k++] = a[i++]; sum[k++] = a[i++]; continue; }
    if (i >= a.length || b[j] < a[i]) { sum[k++] = b[j++]; sum[k++] = b[j++]; continue; }
    sum[k++] = a[i]; sum[k++] = a[i + 1] + b[j + 1];
    i += 2; j += 2;
  }
  return sum.slice(0, k);
}

/// Sum of many lists: pairwise, so that no time is moved more often than the logarithm of their number.
function sumTimes(lists) {
  let left = lists.filter((list) => list.length);
  while (left.length > 1) {
    const next = [];
    for (let i = 0; i < left.length; i += 2) next.push(i + 1 < left.length ? mergeTimes(left[i], left[i + 1]) : left[i]);
    left = next;
  }
  return left[0] ?? new Float64Array(0);
}

function countOf(times) {
  let n = 0;
  for (let i = 1; i < times.length; i += 2) n += times[i];
  return n;
}

/// Quantiles in milliseconds; null without times.
function quantilesOf(times, wanted) {
  const count = countOf(times);
  if (!count) return wanted.map(() => null);
  let i = 0, sum = times[1];
  return wanted.map((q) => {
    const rank = Math.min(count, Math.max(1, Math.ceil(q * count - 1e-9)));
    while (sum < rank) { i += 2; sum += times[i + 1]; }
    return times[i] / 1e6;
  });
}

/// Mean in milliseconds; null without times.
function meanOf(times) {
  let sum = 0, n = 0;
  for (let i = 0; i < times.length; i += 2) { sum += times[i] * times[i + 1]; n += times[i + 1]; }
  return n ? sum / n / 1e6 : null;
}
