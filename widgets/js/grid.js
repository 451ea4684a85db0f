// Servers x origins: what each claims, with the verdict.

function draw(body, data, send) {
  const origins = data.origins || [];
  const rows = data.rows || [];
  if (!rows.length) {
    body.append(make("p", "wb-faint", "No server was collected."));
    return;
  }
  const narrow = origins.length > 5;
  const head = make("tr", "", [
    make("th", "", "server"),
    ...origins.map((one) => make("th", "", one.made_on ? `origin ${one.origin} (${one.made_on})` : `origin ${one.origin}`)),
  ]);
  const lines = rows.map((row, r) =>
    make("tr", "", [
      make("th", "", row.server),
      ...row.cells.map((one, c) => {
        const hover = `${row.server}, origin ${origins[c].origin}: ${one.says}\n` +
          (one.max ? `from ${one.min} (${one.min_at || "no time"})\nto ${one.max} (${one.max_at || "no time"})` : "claims nothing");
        const cell = make("td", "wb-cell", [
          verdict(one.verdict, one.says === "all present" ? "" : one.says),
          make("div", "", one.max ? position(one.max, one.max_at) : make("span", "wb-faint", "-")),
          narrow || !one.min ? null : make("div", "wb-faint", [make("span", "", "from "), position(one.min, one.min_at)]),
        ]);
        cell.title = shown(hover);
        return pressable(cell, `cell-${r}-${c}`, () => send("pick", { row: r, column: c }));
      }),
    ]),
  );
  const whole = make("table", "wb-table wb-grid", [make("thead", "", head), make("tbody", "", lines)]);
  body.append(make("div", "wb-scroll", whole));
  if (data.total > rows.length) body.append(pager(data.first, rows.length, data.total, (by) => send("page", { by })));
  body.append(data.cell ? about_cell(data.cell) : make("p", "wb-faint", "Click a cell for its changes."));
}

function about_cell(cell) {
  const claim = cell.max
    ? [make("span", "", "claims "), position(cell.min, cell.min_at), make("span", "", " to "), position(cell.max, cell.max_at)]
    : [make("span", "", "claims nothing")];
  const log = cell.changes
    ? [make("span", "", `; its log shows ${number(cell.changes)}, `), position(cell.first, cell.first_at), make("span", "", " to "),
      position(cell.last, cell.last_at)]
    : [make("span", "", "; its log shows none")];
  const parts = [make("h3", "", `${cell.server}, origin ${cell.origin}`), make("p", "", [...claim, ...log])];
  const change = [{ key: "position", label: "change", kind: "position" }, { key: "operation", label: "operation" }, { key: "target", label: "target" }];
  const lists = [
    ["missing", "missing", [...change, { key: "cause", label: "cause" }, { key: "says", label: "proved by" }]],
    ["stranded", "stranded", change],
    ["pending", "pending", [{ key: "count", label: "changes", kind: "number" }, { key: "first", label: "first", kind: "position" },
      { key: "last", label: "last", kind: "position" }]],
    ["unknown", "unknown", [{ key: "from", label: "from", kind: "position" }, { key: "to", label: "to", kind: "position" },
      { key: "count", label: "changes", kind: "number" }, { key: "why", label: "why" }]],
  ];
  for (const [name, shade, columns] of lists) {
    if (!(cell[name] || []).length) continue;
    const count = cell[`${name}_count`];
    const more = cell[name].length < count && name !== "pending" ? `, the first ${cell[name].length} of them:` : "";
    const words = name === "unknown" ? `${number(count)} unknown: ${cell.unknown_says}` : `${number(count)} ${name}${more}`;
    parts.push(make("h3", "", verdict(shade, words)), table(columns, cell[name]));
  }
  return make("div", "wb-detail", parts);
}
