// Servers x origins: how far above the floor each stands, and who holds it.

function draw(body, data, send) {
  const origins = data.origins || [];
  const head = make("tr", "", [make("th", "", "server"), make("th", "", "tombstones"),
    ...origins.map((one) => make("th", "", `${one.made_on ? `of ${one.made_on}` : "of no collected server"} (${short(one.origin)})`, one.origin))]);
  const floor = make("tr", "", [make("th", "", "the floor"), make("td", "", ""), ...origins.map((one) => {
    const at = one.floor ? position(one.floor_at || one.floor, one.floor) : make("span", "wb-faint", "nothing");
    return make("td", "", [at, make("span", "wb-faint", one.certain ? "" : " at most")]);
  })]);
  const lines = data.rows.map((row, r) => make("tr", "", [
    make("th", row.known ? "" : "wb-faint", row.known ? row.server : row.origin ? `the server of ${short(row.origin)}` : row.server, row.origin || row.server),
    make("td", "wb-wrap", graves(row.grave)),
    ...row.cells.map((cell, c) => pressable(
      make("td", "wb-cell", [verdict(cell.verdict, cell.says), make("div", "wb-faint", cell.last_at || "")], cell.hover),
      `cell-${r}-${c}`, () => send("pick", { row: r, column: c }))),
  ]));
  body.append(make("div", "wb-scroll", make("table", "wb-table wb-grid", [make("thead", "", head), make("tbody", "", [floor, ...lines])])));
  if (data.total > data.rows.length) body.append(pager(data.first, data.rows.length, data.total, (by) => send("page", { by })));
  body.append(make("div", "wb-row wb-faint", [verdict("present", "at the floor or above"), verdict("stranded", "holds the floor"),
    verdict("unknown", "nobody knows"), verdict("missing", "its next purge leaves somebody behind")]));
  for (const doubt of data.doubts) body.append(make("p", "", verdict("unknown", doubt)));
  if (data.picked)
    body.append(make("div", "wb-detail", [make("h3", "", `${data.picked.server}, origin ${data.picked.origin}: ${data.picked.says}`),
      make("p", "", data.picked.hover)]));
  else body.append(make("p", "wb-faint", "Click a cell for what its server lists, and what of that may go."));
}

// Origins that are named by UUIDs would fill the line; the whole one is on hover.
function short(origin) {
  const whole = shown(origin);
  return whole.length > 12 ? `${whole.slice(0, 8)}…` : whole;
}

function graves(one) {
  if (!one) return "";
  if (!one.kept) return "none";
  const safe = one.safe === null ? "nobody knows how many are safe to forget" : `${number(one.safe)} safe to forget`;
  return `${number(one.kept)}: ${safe}, ${number(one.forgets)} forgotten next${one.needed ? `, of which ${number(one.needed)} are still needed` : ""}`;
}
