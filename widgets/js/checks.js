// One line for each case, the worst first.

function draw(body, data, send) {
  const rows = data.rows || [];
  body.append(make("div", "wb-banner", `${data.clean} of ${rows.length} clean`));
  const lines = rows.map((row, index) => {
    const line = make("tr", `wb-pick${row.chosen ? " wb-chosen" : ""}`, [
      make("td", "", verdict(row.shade, row.outcome)), make("td", "", row.case),
      ...["errors", "warnings", "new", "changed", "gone"].map((key) => make("td", "wb-right", number(row[key]))),
      make("td", "wb-text", row.verdict, row.verdict),
    ]);
    return pressable(line, `row-${index}`, () => send("pick", { index }));
  });
  const heads = ["outcome", "case", "errors", "warnings", "new", "changed", "gone", "verdict"];
  const head = make("tr", "", heads.map((one, at) => make("th", at > 1 && at < 7 ? "wb-right" : "", one)));
  body.append(make("div", "wb-scroll", make("table", "wb-table", [make("thead", "", head), make("tbody", "", lines)])));
  if (data.details)
    body.append(make("div", "wb-detail", [make("h3", "", data.details.case), make("p", "", data.details.verdict), make("pre", "", data.details.text)]));
  else body.append(make("p", "wb-faint", "Click a case for what is new, changed and gone since its baseline."));
}
