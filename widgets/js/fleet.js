// Transactions x servers: what each log lacks of its source's, in the order of commits.

function draw(body, data, send) {
  const rows = data.rows || [];
  if (!rows.length) {
    body.append(make("p", "", data.compared ? verdict("present", "No log lacks anything of its source's.")
      : verdict("unknown", "Of each origin one log was collected: there is none to compare it with.")));
    return;
  }
  const head = make("tr", "", ["transaction", "origin", "at its source", "ended (UTC)"].map((one) => make("th", "", one)));
  head.append(make("th", "wb-right", "rows"), ...data.servers.map((one) => make("th", "", one)));
  const lines = rows.map((row, index) => {
    const several = row.count > 1 ? [make("span", "", " to "), position(row.last), make("span", "wb-faint", ` (${number(row.count)})`)] : [];
    const line = make("tr", row.chosen ? "wb-pick wb-chosen" : "wb-pick", [
      make("td", "", [position(row.first), ...several]),
      make("td", "wb-text", row.origin),
      make("td", "wb-text", row.outcome ? `${shown(row.outcome).replace("_", " ")} (${row.source})` : `not in the log of ${row.source}`),
      make("td", "wb-number", row.at),
      make("td", "wb-right", number(row.kept)),
      ...data.servers.map((name) => {
        const cell = Object.hasOwn(row.cells, name) ? row.cells[name] : null;
        return make("td", "", cell ? verdict(cell.verdict, cell.says || "has it") : "");
      }),
    ]);
    return pressable(line, `row-${index}`, () => send("pick", { index }));
  });
  body.append(make("div", "wb-scroll wb-tall", make("table", "wb-table", [make("thead", "", head), make("tbody", "", lines)])));
  if (data.total > rows.length) body.append(pager(data.first, rows.length, data.total, (by) => send("page", { by })));
  body.append(make("div", "wb-row wb-faint", [verdict("present", "has it as its source"), verdict("missing", "lacks it, or has a part, and is past it"),
    verdict("pending", "behind: on its way"), verdict("stranded", "only there, or void at its source"), verdict("unknown", "nothing tells")]));
  body.append(data.story ? about_change(data.story) : make("p", "wb-faint", "Click a transaction for its whole story. Alike ones that follow each other are one line."));
}
