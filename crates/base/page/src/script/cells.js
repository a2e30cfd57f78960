// Heat map behind the lines of a chart.

/// Draws the cells in view, a path for each shade; neighbours above each other are one shape, as in cells.rs.
function drawCells(chart, group, cells) {
  const paths = new Map();
  cells.shades.forEach((shades, column) => {
    const [left, right] = [2 * column, 2 * column + 1].map((i) => fixed(chart.toX(cells.x[i])));
    if (right < chart.left || left > chart.right) return;
    for (let row = 0; row < shades.length;) {
      const shade = shades[row], first = row;
      while (shades[row] === shade) row++;
      if (shade === "0") continue;
      const [low, high] = [first, row].map((i) => fixed(chart.toY(cells.y[i])));
      paths.set(shade, `${paths.get(shade) ?? ""}M${left} ${low}H${right}V${high}H${left}Z`);
    }
  });
  for (const [shade, d] of paths) group.append(shape("path", { class: `cells s${shade}`, d }));
}
/// Range of the darkest cells of the column at a value of x, as text; empty where there is none. Of several ranges it is
/// the widest one.
function densest(chart, cells, x) {
  const column = cells.shades.findIndex((_, i) => cells.x[2 * i] <= x && x < cells.x[2 * i + 1]);
  if (column < 0) return "";
  const shades = [...cells.shades[column]], most = shades.reduce((a, b) => b > a ? b : a);
  let first = 0, rows = 0;
  for (let row = 0; row < shades.length;) {
    const start = row;
    while (shades[row] === most) row++;
    if (row - start > rows) [first, rows] = [start, row - start];
    row = Math.max(row, start + 1);
  }
  return `mostly ${show(chart.y, cells.y[first])} \u2013 ${show(chart.y, cells.y[first + rows])}`;
}
