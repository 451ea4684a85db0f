// Tables x time: the more rows, the stronger; what counts, what was taken back, and what is undecided, on top of each other.

const LEFT = 230;
const RIGHT = 960;
const ROW = 24;

function draw(body, data, send) {
  const tables = data.tables || [];
  if (!tables.length) {
    body.append(make("p", "wb-faint", `In the log of ${data.server} no rows are changed.`));
    return;
  }
  body.append(make("h3", "", [make("span", "", `${data.server}: `), make("span", "wb-plain", `rows of each table ${data.by === "time" ? "over time" : "along the log"}`)]));
  const tall = tables.length * ROW + 28;
  const words = "Rows of each table from left to right; the numbers stand on the right, and those of one table below, if it is chosen.";
  const svg = draw_svg("svg", { viewBox: `0 0 ${RIGHT + 190} ${tall}`, width: RIGHT + 190, role: "group", "aria-label": words });
  const most = Math.max(1, ...tables.flatMap((one) => one.seen));
  const wide = (RIGHT - LEFT) / data.bins;
  tables.forEach((one, t) => svg.append(pressable(one_table(one, t * ROW + 2, wide, most, data), `table-${t}`, () => send("pick", { index: t }))));
  const unit = (text) => (data.by === "time" ? text || "" : `byte ${number(text)}`);
  svg.append(draw_svg("text", { x: LEFT, y: tall - 8, class: "wb-faint" }, unit(data.from)),
    draw_svg("text", { x: RIGHT, y: tall - 8, "text-anchor": "end", class: "wb-faint" }, unit(data.to)));
  body.append(make("div", "wb-scroll wb-wide", svg));
  body.append(make("div", "wb-row wb-faint", [verdict("present", "rows that count"), verdict("stranded", "taken back"), verdict("pending", "undecided"),
    make("span", "", "stronger: more rows"), data.others ? make("span", "", `${number(data.others)} further tables with fewer rows are not shown`) : null]));
  if (data.picked)
    body.append(make("div", "wb-detail", [make("h3", "", data.picked.table), table([{ key: "from", label: "from" }, { key: "to", label: "to" },
      { key: "seen", label: "rows", kind: "number" }, { key: "kept", label: "count", kind: "number" }, { key: "cancelled", label: "taken back", kind: "number" }], data.picked.rows)]));
  else body.append(make("p", "wb-faint", "Click a table for its numbers."));
}

function one_table(one, y, wide, most, data) {
  const sum = (list) => list.reduce((all, more) => all + more, 0);
  const [seen, kept, gone] = [sum(one.seen), sum(one.kept), sum(one.cancelled)];
  const name = shown(one.table);
  const rest = [`${number(kept)} count`, gone ? `${number(gone)} taken back` : "", one.open ? `${number(one.open)} undecided` : ""].filter(Boolean).join(", ");
  const group = draw_svg("g", { class: "wb-bar" }, [
    draw_svg("rect", { x: 0, y, width: RIGHT + 190, height: ROW - 2, class: "wb-hit" }),
    hover_svg(draw_svg("text", { x: LEFT - 10, y: y + 15, "text-anchor": "end" }, name.length > 30 ? name.slice(0, 29) + "…" : name), `${one.table}: ${number(seen)} rows, ${rest}`),
    draw_svg("text", { x: RIGHT + 10, y: y + 15, class: "wb-faint" }, rest),
    draw_svg("line", { x1: LEFT, y1: y + ROW - 3, x2: RIGHT, y2: y + ROW - 3, class: "wb-rule" }),
  ]);
  for (let bin = 0; bin < data.bins; bin++) {
    const all = one.seen[bin];
    if (!all) continue;
    const cell = draw_svg("g", { opacity: 0.25 + 0.75 * Math.sqrt(all / most) });
    let top = y;
    for (const [kind, count] of [["pending", all - one.kept[bin] - one.cancelled[bin]], ["stranded", one.cancelled[bin]], ["present", one.kept[bin]]]) {
      if (count <= 0) continue;
      const high = ((ROW - 4) * count) / all;
      const shape = { x: LEFT + bin * wide, y: top, width: Math.max(1, wide - 1), height: high };
      cell.append(draw_svg("rect", { ...shape, class: `wb-fill-${kind}` }));
      if (kind === "stranded") cell.append(draw_svg("line", { x1: shape.x, y1: top + high, x2: shape.x + shape.width, y2: top, class: "wb-strike" }));
      top += high;
    }
    const where = data.by === "time" ? data.edges[bin] : `byte ${number(data.edges[bin])}`;
    hover_svg(cell, `${one.table}, from ${where}: ${number(all)} rows, ${number(one.kept[bin])} count, ${number(one.cancelled[bin])} taken back`);
    group.append(cell);
  }
  return group;
}
