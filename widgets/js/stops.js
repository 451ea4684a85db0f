const ORIGINS = [
  { key: "origin", label: "origin" },
  { key: "consumer", label: "consumer has", kind: "position" },
  { key: "stop", label: "stop", kind: "position" },
  { key: "beyond", label: "beyond it", kind: "number" },
  { key: "first", label: "first beyond", kind: "position" },
  { key: "last", label: "last beyond", kind: "position" },
  { key: "says", label: "" },
];
const LOADS = [
  { key: "number", label: "load", kind: "number" },
  { key: "where", label: "" },
  { key: "from", label: "begins", kind: "position" },
  { key: "records", label: "records", kind: "number" },
  { key: "sent", label: "sent", kind: "number" },
  { key: "last", label: "border: last record read", kind: "position" },
  { key: "says", label: "why there" },
];

function draw(body, data) {
  for (const side of data.sides || []) {
    body.append(make("h3", "", `rule set ${side.rules}`));
    for (const line of (side.says || "").split("\n")) body.append(make("p", "", line));
    body.append(wrapped(ORIGINS, side.origins));
    if (side.why) body.append(make("p", "wb-faint", side.why));
    if (side.reloads.length) body.append(make("h3", "", "What a reload does"));
    for (const one of side.reloads) body.append(reload(one, data.per_load));
  }
}

function reload(one, per_load) {
  const buffer = per_load ? `${number(per_load)} records in a buffer` : "all records in one buffer";
  const sum = `${one.with}, ${buffer}: ${number(one.count)} loads, ${number(one.records)} records read, ${number(one.sent)} sent`;
  const rows = one.loads.map((load) => ({ ...load, where: load.included ? "from" : "from behind" }));
  const parts = [make("p", "", make("strong", "", sum)), wrapped(LOADS, rows)];
  if (one.count > one.loads.length)
    parts.push(make("p", "wb-faint", `${number(one.count - one.loads.length)} loads before the last one are not shown.`));
  const end = one.cut ? `It goes on: only ${number(one.records)} records are played here.` : `It ends: ${one.end}`;
  return make("section", "wb-reload", [...parts, make("p", "", end)]);
}

// The sentence at the end of a row takes the lines that it needs.
function wrapped(columns, rows) {
  const made = table(columns, rows);
  made.classList.add("wb-last-wraps");
  return made;
}
