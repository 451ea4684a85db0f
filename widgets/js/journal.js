function draw(body, data, send) {
  body.append(make("div", "wb-row", [button("Look again", "look", () => send("look"), "Read the journal again")]));
  if (!data.total) {
    body.append(make("p", "wb-faint", "The journal of this case is empty: nothing was begun."));
    return;
  }
  body.append(table([
    { key: "n", label: "n", kind: "number" },
    { key: "at", label: "when (UTC)" },
    { key: "what", label: "what" },
    { key: "step", label: "step" },
    { key: "says", label: "" },
    { key: "plan", label: "plan" },
  ], data.rows));
  body.append(pager(data.first, data.rows.length, data.total, (by) => send("page", { by })));
}
