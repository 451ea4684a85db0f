// Tombstones, the oldest first: who has seen each, who forgets it next, and for whom it is kept.

function draw(body, data, send) {
  const rows = data.rows || [];
  if (!rows.length) {
    body.append(make("p", "wb-faint", data.shown ? "Of what is chosen here, no tombstone is kept." : "The entries of no server were collected."));
    if (data.number > 1) body.append(turns(data, send));
    return;
  }
  const heads = ["deleted (UTC)", "entry", "name", "by", "forgotten next by", "still needed by", ...data.servers, "the design keeps it for"];
  const head = make("tr", "", heads.map((one) => make("th", "", one)));
  const names = (some) => (some.length ? some.join(", ") : "nobody");
  const lines = rows.map((row, index) => {
    const line = make("tr", row.chosen ? "wb-pick wb-chosen" : "wb-pick", [
      make("td", "wb-number", row.at || row.position, row.position),
      make("td", "", position(row.entry)),
      make("td", "wb-text", row.target || ""),
      make("td", "", row.made_on || row.origin),
      make("td", "", names(row.reapable)),
      make("td", "", row.held_by.length ? verdict("stranded", names(row.held_by)) : "nobody"),
      ...row.cells.map((cell) => make("td", "", verdict(cell.verdict, cell.says))),
      make("td", "wb-faint", names(row.design)),
    ]);
    return pressable(line, `row-${index}`, () => send("pick", { index }));
  });
  body.append(make("div", "wb-scroll wb-tall", make("table", "wb-table", [make("thead", "", head), make("tbody", "", lines)])));
  if (data.number > 1 || data.more) body.append(turns(data, send));
  body.append(data.story ? about_change(data.story) : make("p", "wb-faint", "Click a tombstone for the story of the deletion."));
}
