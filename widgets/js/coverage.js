// Nodes x files of the log: who has which, and from which one a node that is behind needs them.

const LEFT = 210;
const RIGHT = 760;
const ROW = 26;

function draw(body, data) {
  const rows = data.rows || [];
  const count = data.high - data.low + 1;
  const wide = (RIGHT - LEFT) / count;
  const tall = 30 + rows.length * ROW + 6;
  const words = "Files of the log from left to right, a row for each node; the same as a table below.";
  const svg = draw_svg("svg", { viewBox: `0 0 ${RIGHT + 300} ${tall}`, width: RIGHT + 300, role: "img", "aria-label": words });
  const x = (file) => LEFT + (file - data.low) * wide;
  const step = Math.max(1, Math.ceil(count / 14));
  for (let file = data.low; file <= data.high; file += step)
    svg.append(draw_svg("text", { x: x(file) + wide / 2, y: 14, "text-anchor": "middle", class: "wb-faint" }, String(file)));
  rows.forEach((one, index) => svg.append(bar(one, 24 + index * ROW, x, wide)));
  if (data.held !== null && data.held >= data.low && data.held <= data.high)
    svg.append(hover_svg(draw_svg("line", { x1: x(data.held), y1: 20, x2: x(data.held), y2: tall, class: "wb-strike" }), `files from ${data.held} on are held`));
  body.append(make("div", "wb-scroll wb-wide", svg));
  body.append(make("div", "wb-row wb-faint", [verdict("present", "has the file"), verdict("unknown", "had it when it last reported itself"),
    verdict("pending", "needs it, and somebody who answers has it"), verdict("missing", "needs it, and nobody who answers has it")]));
  if (data.left) body.append(make("p", "wb-faint", `${number(data.left)} further nodes are not shown.`));
  body.append(table([{ key: "name", label: "node" }, { key: "condition", label: "is" }, { key: "files", label: "files" }, { key: "needed", label: "needs" },
    { key: "who", label: "who has it and answers" }, { key: "mute", label: "who has it and is silent" }, { key: "lost", label: "gone from the source in" }],
  rows.map((one) => ({ ...one, files: runs(one), needed: one.needs === null ? "" : String(one.needs),
    who: one.needs === null ? "" : one.served_by.join(", ") || "nobody", mute: one.silent.join(", "),
    lost: one.lost_in === null ? "" : `${number(Math.round(one.lost_in))} s` }))));
}

function runs(one) {
  const told = one.runs.map(([low, high]) => (low === high ? String(low) : `${low} to ${high}`)).join(", ");
  return told ? (one.certain ? told : `${told}, as reported`) : "nobody knows";
}

function bar(one, y, x, wide) {
  const whole = shown(one.name);
  const group = draw_svg("g", {}, [
    draw_svg("text", { x: LEFT - 10, y: y + 15, "text-anchor": "end" }, whole.length > 28 ? whole.slice(0, 27) + "…" : whole),
    draw_svg("line", { x1: LEFT, y1: y + ROW - 3, x2: RIGHT, y2: y + ROW - 3, class: "wb-rule" }),
  ]);
  for (const [low, high] of one.runs)
    group.append(draw_svg("rect", { x: x(low) + 1, y: y + 3, width: Math.max(2, (high - low + 1) * wide - 2), height: ROW - 9, class: `wb-fill-${one.certain ? "present" : "unknown"}` }));
  const says = one.needs === null ? "" : `needs ${one.needs}: ${one.helped ? `${shown(one.served_by[0])} has it` : "nobody who answers has it"}`;
  if (one.needs !== null) {
    const name = one.helped ? "pending" : "missing";
    group.append(draw_svg("rect", { x: x(one.needs) + 1, y: y + 1, width: Math.max(4, wide - 2), height: ROW - 5, class: `wb-fill-${name}` }));
    group.append(draw_svg("text", { x: x(one.needs) + wide / 2, y: y + 15, "text-anchor": "middle", "font-weight": 700, class: "wb-ink" }, one.helped ? "…" : "✗"));
    group.append(draw_svg("text", { x: RIGHT + 10, y: y + 15 }, says.length > 44 ? says.slice(0, 43) + "…" : says));
  }
  return hover_svg(group, `${one.name}: files ${runs(one)}${says ? `; ${says}` : ""}`);
}
