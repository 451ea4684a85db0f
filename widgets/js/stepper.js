// What a page remembers of its own stepper: whether it runs, how fast, which folds are open.
const kept = new WeakMap();
const SPEEDS = [1, 3, 8];
const NOTES = { sent: ["≠", "one rule set sends it, another does not"], reason: ["~", "no difference in what is sent, but in the reason"] };

function draw(body, data, send) {
  if (!data.sides) return;
  const mine = kept.get(body) || { running: false, speed: 3, open: new Set(), timer: 0 };
  kept.set(body, mine);
  clearTimeout(mine.timer);
  const ended = data.total !== null && data.at >= data.total - 1;
  if (ended) mine.running = false;
  if (data.rows.length) body.append(controls(body, data, send, mine, ended));
  if (data.cut)
    body.append(make("div", "wb-banner",
      `Only the first ${number(data.played)} records are played here; the counts of the whole session stand beside each.`));
  body.append(make("div", "wb-beside", data.sides.map((side) => head(side, mine))));
  if (data.rows.length) {
    body.append(rows(data, send));
    body.append(make("div", "wb-beside", data.sides.map((side) => decided(side, data))));
    body.append(make("div", "wb-beside", data.sides.map((side) => stops(side, mine))));
  } else {
    body.append(make("p", "wb-faint", "No record is read under any rule set: the sentences above say why."));
  }
  if (mine.running) {
    mine.timer = setTimeout(() => {
      if (body.isConnected && mine.running) send("step", { by: 1 });
    }, 1000 / mine.speed);
  }
}

function controls(body, data, send, mine, ended) {
  const jump = (to) => () => {
    stop();
    send("jump", { to });
  };
  const stop = () => {
    mine.running = false;
    clearTimeout(mine.timer);
    run.textContent = "Run";
  };
  const step = (by) => () => {
    stop();
    send("step", { by });
  };
  const run = button(mine.running ? "Pause" : "Run", "run", () => {
    if (mine.running) return stop();
    mine.running = true;
    run.textContent = "Pause";
    return send("step", { by: 1 });
  }, "one record after the other", ended);
  const speeds = SPEEDS.map((speed) => {
    const one = button(`${speed}/s`, `speed-${speed}`, () => {
      mine.speed = speed;
      speeds.forEach((other) => other.setAttribute("aria-pressed", String(other === one)));
    }, `${speed} records a second`);
    one.setAttribute("aria-pressed", String(mine.speed === speed));
    return one;
  });
  const of = data.total === null ? "" : ` of ${number(data.total)}`;
  return make("div", "wb-row wb-stepper-controls", [
    button("Start", "start", jump("start"), "to the first record", data.at === 0),
    button("Back", "back", step(-1), "one record back", data.at === 0),
    button("Step", "step", step(1), "the next record", ended),
    button("End", "end", jump("end"), "to the last record", ended),
    run,
    make("span", "wb-stepper-speeds", speeds),
    make("span", "wb-stepper-gap"),
    button("First skip", "first_skip", jump("first_skip"), `the first record that ${data.leading} reads and does not send`),
    button("Next skip", "skip", jump("skip"), `the next record that ${data.leading} reads and does not send`),
    button("Next load", "load", jump("load"), "where a buffer is loaded next"),
    button("Next difference", "difference", jump("difference"), "the next record that one rule set sends and another does not"),
    make("span", "wb-number wb-stepper-place", `record ${number(data.at + 1)}${of}`),
  ]);
}

function fold(mine, key, title, content) {
  const node = make("details", "", [make("summary", "wb-faint", title), content]);
  node.open = mine.open.has(key);
  node.addEventListener("toggle", () => (node.open ? mine.open.add(key) : mine.open.delete(key)));
  return node;
}

function head(side, mine) {
  const lines = (side.says || "").split("\n").map((line) => make("p", "", line));
  const parts = [make("h3", "", `rule set ${side.rules}`), ...lines];
  if (side.anchor) parts.push(make("p", "", ["anchor ", position(side.anchor, side.anchor_at)].map(text)));
  if (side.counts.length) {
    const counts = side.counts.map(([words, many]) => `${number(many)} ${words}`).join(", ");
    parts.push(make("p", "wb-faint", `The whole session, undisturbed and in one load: ${counts}.`));
  }
  const why = side.reasons.map((one) => make("p", "", [text(`${one.says} `), ...one.values.flatMap(named)]));
  parts.push(fold(mine, `why-${side.rules}`, side.load > 1 ? `why load ${number(side.load)} begins there` : "why so", make("div", "wb-why", why)));
  return make("section", "", parts);
}

function text(one) {
  return typeof one === "string" ? document.createTextNode(shown(one)) : one;
}

function named([name, value, at]) {
  return [make("span", "wb-faint", ` ${name} `), at ? position(value, at) : make("code", "wb-position", value)];
}

function rows(data, send) {
  const titles = ["", "record", "position", "origin", ...data.sides.map((side) => side.rules)];
  const lines = [make("thead", "", make("tr", "", titles.map((title, at) => make("th", at === 1 ? "wb-right" : "", title))))];
  const body = make("tbody");
  for (const row of data.rows) {
    if (row.loads.some(Boolean)) body.append(border("wb-load", row.loads));
    const [sign, says] = entry(NOTES, row.differs, ["", ""]);
    const current = row.number - 1 === data.at;
    const line = make("tr", current ? "wb-chosen wb-pick" : "wb-pick", [
      make("td", "wb-differs", current ? `▶ ${sign}` : sign, says),
      make("td", "wb-right", number(row.number)),
      make("td", "", position(row.position, row.at)),
      make("td", "wb-text", row.origin, row.origin),
      ...row.cells.map(cell_of),
    ]);
    if (current) line.setAttribute("aria-current", "true");
    body.append(pressable(line, `row-${row.number}`, () => send("go", { row: row.number - 1 })));
    const stops = row.stops.map((names) => (names.length ? `stop of origin ${names.join(", ")}` : ""));
    if (stops.some(Boolean)) body.append(border("wb-stop", stops));
  }
  lines.push(body);
  return make("div", "wb-scroll wb-stepper-rows", make("table", "wb-table", lines));
}

function cell_of(cell) {
  if (!cell) return make("td", "wb-faint", "not read here");
  return make("td", cell.sent ? "wb-sent" : "wb-left-out", `${cell.sent ? "→" : "·"} ${cell.words}`, `rule ${cell.rule}, load ${cell.load}`);
}

function border(kind, words) {
  const cells = [make("td"), make("td"), make("td"), make("td")];
  return make("tr", `wb-border ${kind}`, [...cells, ...words.map((word) => make("td", word ? "wb-edge" : "", word, word))]);
}

function decided(side, data) {
  const now = side.now;
  const values = now.values.length ? make("p", "", now.values.flatMap(named)) : null;
  const words = now.read ? `${side.rules}: ${now.words}. ` : `${side.rules}: `;
  return make("section", `wb-decided${data.same ? "" : " wb-decided-apart"}`, [
    make("p", "", [make("strong", "", words), text(now.says)]),
    values,
    now.read ? make("p", "wb-faint", `rule ${now.rule}, load ${number(side.load)}, ${number(side.sent)} sent so far`) : null,
    side.end ? make("p", "", [make("strong", "", "The session ends here. "), text(side.end)]) : null,
  ]);
}

const STOPS = [
  { key: "origin", label: "origin" },
  { key: "has", label: "consumer has by now", kind: "position" },
  { key: "sent", label: "sent", kind: "number" },
  { key: "stop", label: "stop", kind: "position" },
];

function stops(side, mine) {
  if (!side.stops.length) return make("section");
  const key = `stops-${side.rules}`;
  if (!mine.seen) mine.seen = new Set();
  if (!mine.seen.has(key)) {
    mine.seen.add(key);
    mine.open.add(key);
  }
  return make("section", "", fold(mine, key, `stops of ${side.rules} in load ${number(side.load)}`, table(STOPS, side.stops)));
}
