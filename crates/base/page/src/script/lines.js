// A line of a chart with its band and its points.

// More bands would merge into one area: then each point has its interval, as in svg.rs.
const MAX_BANDS = 3;

/// Draws a line. Of points that share a column of pixels only the lowest and the highest are drawn, so that no peak is
/// lost.
function drawLine(chart, group, line, from, to) {
  const [start, end] = chart.inSight(line, from, to);
  const { xs, y } = line;
  const px = new Float64Array(end - start);
  for (let i = start; i < end; i++) px[i - start] = chart.toX(xs[i]);
  // Where points are closer than pixels, whole ones are exact enough, and written faster.
  const place = end - start > (chart.right - chart.left) / 2 ? Math.round : fixed;
  let d = "", joined = false;
  for (let i = start; i < end;) {
    if (y[i] === null) { joined = false; i++; continue; }
    const column = Math.floor(px[i - start]);
    let low = i, high = i;
    const first = i;
    for (i++; i < end && y[i] !== null && Math.floor(px[i - start]) === column; i++) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
    }
    for (const j of low === high ? [low] : low < high ? [low, high] : [high, low]) {
      d += `${joined ? "L" : "M"}${place(px[j - start])} ${fixed(chart.toY(y[j]))}`;
      joined = true;
    }
    const alone = low === high && (first === 0 || y[first - 1] === null) && (i >= y.length || y[i] === null);
    if (alone) d += "h.1";
  }
  const hue = `h${line.hue}`;
  if (line.low) {
    const upper = [], lower = [];
    let last = -1;
    for (let i = start; i < end; i++) {
      if (line.low[i] === null || line.high[i] === null) continue;
      const x = place(px[i - start]), column = Math.floor(px[i - start]);
      const [a, b] = [chart.toY(line.low[i]), chart.toY(line.high[i])];
      if (column === last) {
        upper[upper.length - 1][1] = Math.min(upper[upper.length - 1][1], b);
        lower[lower.length - 1][1] = Math.max(lower[lower.length - 1][1], a);
      } else { upper.push([x, b]); lower.push([x, a]); }
      last = column;
    }
    const outline = [...upper, ...lower.reverse()].map(([x, v]) => `${x} ${fixed(v)}`).join("L");
    const banded = chart.spec.lines.filter((other) => other.low && !other.own).length;
    if (banded > MAX_BANDS) {
      const beside = (chart.spec.lines.indexOf(line) - (banded - 1) / 2) * 2.5;
      const reach = ([x, top], i) => `M${fixed(x + beside)} ${fixed(top)}V${fixed(lower[upper.length - 1 - i][1])}`;
      const reaches = upper.map(reach);
      group.append(shape("path", { class: `reach ${hue}`, d: reaches.join("") }));
    } else if (outline) group.append(shape("path", { class: `band ${hue}`, d: `M${outline}Z` }));
  }
  group.append(shape("path", { class: `line ${hue}`, d }));
  if (end - start < (chart.right - chart.left) / 16) {
    for (let i = start; i < end; i++) {
      if (y[i] === null) continue;
      const kind = line.untrusted?.includes(i) ? `dot hollow ${hue}` : `dot ${hue}`;
      group.append(shape("circle", { class: kind, cx: fixed(px[i - start]), cy: fixed(chart.toY(y[i])), r: 2.5 }));
    }
  }
}

/// Names of points, above them or below, by the rules of svg.rs; those without room are left out.
function pointNames(chart, lines, from, to) {
  const taken = [], named = [];
  for (const line of lines) {
    (line.labels ?? []).forEach((name, i) => {
      if (line.y[i] === null || line.xs[i] < from || line.xs[i] > to) return;
      const half = name.length * 3.6, y = chart.toY(line.y[i]);
      const x = Math.min(Math.max(chart.toX(line.xs[i]), chart.left + half), chart.right + RIGHT - half);
      const isFree = (at) => at > 12 && at < chart.bottom
        && taken.every(([other, side, height]) => Math.abs(other - x) > side + half + 3 || Math.abs(height - at) > 13);
      const at = [y - 8, y + 17].find(isFree);
      if (at === undefined) return;
      taken.push([x, half, at]);
      named.push([{ x: fixed(x), y: fixed(at), "text-anchor": "middle" }, name]);
    });
  }
  return named;
}
