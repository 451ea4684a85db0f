// Positions stand in their order, one line each, and not to scale: changes of one second would lie on each other.
const LINE = 26;
const WIDE = 1000;
const AXES = 372;
const LOG = 322;
const SIGNS = { anchor: "◆", absent: "◇", candidate: "●" };

function draw(body, data) {
  if (!data.sides) return;
  body.append(make("div", "wb-beside", data.sides.map(decision)));
  const any = data.points.some((point) => point.marks.some((marks) => marks.length));
  if (any) body.append(number_line(data));
  else body.append(make("p", "wb-faint", "No origin has a candidate under any rule set: the sentences above say why."));
  for (const side of data.sides) body.append(make("h3", "", `rule set ${side.rules}: the candidates`), candidates(side));
}

function decision(side) {
  const parts = [make("h3", "", `rule set ${side.rules}`)];
  for (const line of (side.says || "").split("\n")) parts.push(make("p", "", line));
  if (side.anchor) {
    const there = side.in_log ? make("span", "wb-verdict wb-present", "in the log") : make("span", "wb-verdict wb-missing", "not in the log");
    parts.push(make("p", "", [make("span", "", "anchor "), position(side.anchor, side.anchor_at), make("span", "", " "), there]));
  }
  if (side.next)
    parts.push(make("p", "", [make("span", "", "the first record read: "), position(side.next, side.next_at)]));
  for (const reason of side.reasons) parts.push(make("p", "wb-faint", reason.says));
  return make("section", "", parts);
}

function number_line(data) {
  const top = 34;
  const high = top + data.points.length * LINE + 8;
  const wide = (WIDE - AXES) / data.sides.length;
  const svg = draw_svg("svg", { viewBox: `0 0 ${WIDE} ${high}`, width: WIDE, height: high, role: "img", class: "wb-anchor-line" });
  svg.append(draw_svg("text", { x: LOG, y: 14, "text-anchor": "middle", class: "wb-faint" }, "log"));
  data.sides.forEach((side, at) => {
    const x = AXES + at * wide;
    svg.append(draw_svg("line", { x1: x, x2: x, y1: top - 10, y2: high - 4, class: "wb-axis" }));
    svg.append(draw_svg("text", { x: x - 6, y: 14, class: "wb-title" }, cut(`rule set ${side.rules}`, wide)));
  });
  const ends = data.points.map((point, at) => (point.log.length ? top + at * LINE : null)).filter((y) => y !== null);
  if (ends.length) {
    const bar = draw_svg("rect", { x: LOG - 5, y: ends[0] - 8, width: 10, height: ends[ends.length - 1] - ends[0] + 16, rx: 3, class: "wb-log" });
    svg.append(hover_svg(bar, "what the supplier's log shows, from its first to its last record"));
  }
  data.points.forEach((point, at) => {
    const y = top + at * LINE;
    svg.append(draw_svg("line", { x1: 0, x2: WIDE, y1: y + 13, y2: y + 13, class: "wb-rule" }));
    const name = draw_svg("text", { x: 4, y: y + 4, class: "wb-position" }, cut(point.position, 165));
    svg.append(hover_svg(name, [point.position, ...point.log].join("\n")));
    if (point.at) svg.append(draw_svg("text", { x: 172, y: y + 4, class: "wb-faint" }, point.at));
    point.marks.forEach((marks, side) => {
      if (!marks.length) return;
      const x = AXES + side * wide;
      const kinds = marks.map((mark) => mark.kind);
      const kind = ["absent", "anchor", "candidate"].find((one) => kinds.includes(one));
      svg.append(draw_svg("text", { x, y: y + 5, "text-anchor": "middle", class: `wb-mark wb-mark-${kind}` }, SIGNS[kind]));
      const label = draw_svg("text", { x: x + 14, y: y + 4 }, cut(words(kind, marks), wide - 24));
      svg.append(hover_svg(label, marks.map((mark) => (mark.origin ? `origin ${mark.origin}: ${mark.says}` : mark.says)).join("\n")));
    });
  });
  return make("div", "wb-scroll wb-anchor", svg);
}

function words(kind, marks) {
  const origins = marks.filter((mark) => mark.origin).map((mark) => mark.origin).join(", ");
  const of = origins ? ` of origin ${origins}` : "";
  if (kind === "candidate") return `candidate${of}`;
  return `ANCHOR${kind === "absent" ? " (absent)" : ""}${of}`;
}

// As much of a text as fits; the whole one is on hover.
function cut(text, wide) {
  const most = Math.floor(wide / 6.6);
  const whole = shown(text);
  return whole.length > most ? whole.slice(0, most - 1) + "…" : whole;
}

const COLUMNS = [
  { key: "origin", label: "origin" },
  { key: "consumer", label: "consumer has", kind: "position" },
  { key: "stop", label: "supplier claims", kind: "position" },
  { key: "first", label: "first, by its vector", kind: "position" },
  { key: "first_in_log", label: "first in the log", kind: "position" },
  { key: "candidate", label: "candidate", kind: "position" },
  { key: "says", label: "why" },
];

function candidates(side) {
  const made = table(COLUMNS, side.candidates);
  made.classList.add("wb-last-wraps");
  return made;
}
