// Positions in their order, with the entries that carry each at each server.

function draw(body, data, send) {
  const rows = data.rows || [];
  if (!rows.length) {
    body.append(make("p", "wb-faint", data.listed ? "Of what is chosen here, no position is listed." : "No file lists positions one by one."));
    if (data.number > 1) body.append(turns(data, send));
    return;
  }
  const head = make("tr", "", ["made (UTC)", "on", ...data.servers, "position"].map((one) => make("th", "", one)));
  const lines = rows.map((row, index) => {
    const line = make("tr", row.chosen ? "wb-pick wb-chosen" : "wb-pick", [
      make("td", "wb-number", row.at),
      make("td", "", row.made_on || make("span", "wb-faint", "no collected server")),
      ...row.cells.map(cell_of),
      make("td", "", position(row.position, row.at)),
    ]);
    return pressable(line, `row-${index}`, () => send("pick", { index }));
  });
  body.append(make("div", "wb-scroll wb-tall", make("table", "wb-table wb-listed", [make("thead", "", head), make("tbody", "", lines)])));
  if (data.number > 1 || data.more) body.append(turns(data, send));
  body.append(make("div", "wb-row wb-faint", [verdict("present", "listed, or shown by an entry"), verdict("missing", "lacks it"), verdict("pending", "has not seen it"),
    verdict("nothing", "not listed any more"), make("span", "", "no entry carries an anchor: no loss")]));
  const chosen = rows.find((row) => row.chosen);
  if (chosen && chosen.anchor)
    body.append(make("div", "wb-detail", [make("h3", "", "An anchor"), make("p", "", [position(chosen.position, chosen.at),
      make("span", "", ": no entry carries it, and nothing is lost with it. Its server made it to show that it lives, or later changes have replaced all that it changed.")])]));
  else body.append(data.story ? about_change(data.story) : make("p", "wb-faint", "Click a position for its whole story."));
}

function cell_of(cell) {
  const names = cell.entries.map((one) => `${one.target || one.entry} (${one.attributes})`);
  if (cell.more) names.push(`and ${number(cell.more)} more`);
  const all = names.join("; ");
  const whole = cell.entries.map((one) => `${one.entry} ${one.target || ""}: ${one.attributes}`).join("\n");
  const node = make("td", "wb-text", [verdict(cell.verdict, ""), make("span", cell.verdict === "missing" ? "" : "wb-faint", cell.says || ""),
    make("span", "", cell.says && all ? `; ${all}` : all)], whole);
  return node;
}
