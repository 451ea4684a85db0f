// The lists of changes, and the story of the one that was clicked.

const CHANGE = [{ key: "server", label: "server" }, { key: "origin", label: "origin" }];
const COLUMNS = {
  missing: [...CHANGE, { key: "position", label: "change", kind: "position" }, { key: "operation", label: "operation" },
    { key: "target", label: "target" }, { key: "attribute", label: "attribute" }, { key: "held_by", label: "held by" }, { key: "cause", label: "cause" },
    { key: "says", label: "proved by" }],
  stranded: [...CHANGE, { key: "position", label: "change", kind: "position" }, { key: "operation", label: "operation" },
    { key: "target", label: "target" }, { key: "attribute", label: "attribute" }],
  unknown: [...CHANGE, { key: "from", label: "from", kind: "position" }, { key: "to", label: "to", kind: "position" },
    { key: "count", label: "changes", kind: "number" }, { key: "why", label: "why" }],
  pending: [...CHANGE, { key: "count", label: "changes", kind: "number" }, { key: "first", label: "first", kind: "position" },
    { key: "last", label: "last", kind: "position" }, { key: "available", label: "available", kind: "number" },
    { key: "suppliers", label: "sent by" }],
};

function draw(body, data, send) {
  const tabs = (data.lists || []).map((one) => {
    const count = one.of ? `${number(one.count)} of ${number(one.of)}` : number(one.count);
    const tab = button(`${count} ${one.name}`, `list-${one.name}`, () => send("list", { name: one.name }), "", !one.count);
    tab.classList.add("wb-tab");
    tab.setAttribute("aria-pressed", String(one.name === data.list));
    return tab;
  });
  body.append(make("div", "wb-row", tabs));
  if (!data.total) {
    body.append(make("p", "wb-faint", "Of what is chosen here, nothing is missing, unknown, pending or stranded."));
    return;
  }
  // A log tells the operation, the states of entries which attribute was changed: a column is there if any row fills it.
  const filled = (key) => data.rows.some((row) => row[key]);
  const columns = entry(COLUMNS, data.list, CHANGE).filter((one) => !["operation", "attribute"].includes(one.key) || filled(one.key));
  body.append(table(columns, data.rows, (row, index) => send("pick", { index })));
  if (data.total > data.rows.length) body.append(pager(data.first, data.rows.length, data.total, (by) => send("page", { by })));
  body.append(data.story ? about_change(data.story) : make("p", "wb-faint", "Click a change for its whole story."));
}
