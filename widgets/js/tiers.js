// A tree of nodes, tiers from left to right: each row is one node, so that beside it there is room for words.

const COLUMN = 250;
const ROW = 46;
const BOX = { width: 196, height: 36 };

function draw(body, data, send) {
  const nodes = data.nodes || [];
  const wide = 24 + (data.tiers - 1) * COLUMN + BOX.width + 290;
  const rows = Math.max(0, ...nodes.map((one) => one.row)) + 1;
  const tall = 26 + rows * ROW;
  const words = `Nodes below ${data.source}, each to the right of the one it pulls from; the same as a table below.`;
  const svg = draw_svg("svg", { viewBox: `0 0 ${wide} ${tall}`, width: wide, role: "group", "aria-label": shown(words) });
  for (let tier = 0; tier < data.tiers; tier++)
    svg.append(draw_svg("text", { x: left(tier), y: 14, class: "wb-faint" }, tier ? `tier ${tier}` : `tier 0: ${short(data.source, 20)}`));
  if (data.adrift !== null) svg.append(draw_svg("text", { x: left(0), y: middle(data.adrift) + 10, class: "wb-faint" }, "hang on nothing:"));
  const places = new Map(nodes.map((one) => [one.row, one]));
  for (const one of nodes) if (places.has(one.up)) svg.append(edge(one, places.get(one.up)));
  nodes.forEach((one, index) => svg.append(pressable(box(one, data.fanout), `node-${index}`, () => send("pick", { index }))));
  body.append(make("div", "wb-scroll wb-wide", svg));
  body.append(make("div", "wb-row wb-faint", (data.shades || []).map((one) => verdict(one.name, one.says))));
  if (data.left) body.append(make("p", "wb-faint", `${number(data.left)} further nodes are not drawn: those of which least is to be told.`));
  body.append(make("p", "", data.retention));
  body.append(data.picked ? about(data.picked) : make("p", "wb-faint", "Click a node for all that is known of it."));
  body.append(make("h3", "", "All that are drawn"));
  body.append(table([{ key: "name", label: "node" }, { key: "condition", label: "is" }, { key: "lag", label: "behind the source" },
    { key: "edge_says", label: "behind the node above" }, { key: "serves", label: "serves", kind: "number" },
    { key: "needs", label: "needs file", kind: "number" }, { key: "helps", label: "who has it and answers" }],
  nodes.map((one) => ({ ...one, helps: one.needs === null ? "" : one.help })), (_, index) => send("pick", { index })));
}

const left = (tier) => 12 + tier * COLUMN;
const middle = (row) => 26 + row * ROW + ROW / 2;

function short(text, most) {
  const whole = shown(text);
  return whole.length > most ? whole.slice(0, most - 1) + "…" : whole;
}

// Down from the node above, and to the right; what is lost on the way stands on the line.
function edge(one, above) {
  const [x, y] = [left(above.tier) + 14, middle(one.row)];
  const name = known_verdict(one.edge === "0" ? "present" : one.verdict);
  const group = draw_svg("g", {}, [
    draw_svg("line", { x1: x, y1: middle(above.row) + BOX.height / 2, x2: x, y2: y, class: "wb-line wb-stroke-nothing" }),
    draw_svg("line", { x1: x, y1: y, x2: left(one.tier), y2: y, class: `wb-line wb-stroke-${name}` }),
    draw_svg("text", { x: left(one.tier) - 6, y: y - 5, "text-anchor": "end", class: one.edge === "0" ? "wb-faint" : "" }, one.edge === "0" ? "" : short(one.edge, 12)),
  ]);
  return hover_svg(group, one.edge_says);
}

function box(one, fanout) {
  const name = known_verdict(one.verdict);
  const [x, y] = [left(one.tier), middle(one.row) - BOX.height / 2];
  const beside = [one.holds ? "⚓ holds the log" : "", one.full ? `serves ${number(one.serves)}, fanout ${number(fanout)}` : "",
    one.more ? `and ${number(one.more)} more below` : "", one.needs === null ? "" : `needs file ${one.needs}`].filter(Boolean).join(" · ");
  const under = one.lag === "0" ? one.condition : `${one.condition} · ${one.lag}`;
  const group = draw_svg("g", { class: "wb-bar" }, [
    draw_svg("rect", { x, y, width: BOX.width, height: BOX.height, rx: 4, class: `wb-box wb-edge-${name}` }),
    draw_svg("rect", { x, y, width: 18, height: BOX.height, rx: 3, class: `wb-fill-${name}` }),
    draw_svg("text", { x: x + 9, y: y + 22, "text-anchor": "middle", "font-weight": 700, class: "wb-ink" }, short(one.sign, 2)),
    draw_svg("text", { x: x + 25, y: y + 15, "font-weight": 600 }, short(one.name, 24)),
    draw_svg("text", { x: x + 25, y: y + 30, class: "wb-faint" }, short(under, 27)),
    draw_svg("text", { x: x + BOX.width + 8, y: y + 22, class: one.holds || one.full ? "" : "wb-faint" }, beside),
  ]);
  return hover_svg(group, `${one.name}: ${one.says}; behind its source by ${one.lag}${beside ? `; ${beside}` : ""}`);
}

function about(picked) {
  const parts = [make("h3", "", [verdict(picked.verdict, picked.title)]), make("p", "", picked.says),
    table([{ key: "what", label: "" }, { key: "value", label: "" }], picked.rows)];
  if (picked.offered.length) {
    parts.push(make("h3", "", "If it asks the registry for a source now"));
    parts.push(table([{ key: "node", label: "node" }, { key: "said", label: "" }, { key: "why", label: "why" }],
      picked.offered.map((one) => ({ ...one, said: one.offered ? "may be offered" : "is not offered" }))));
  }
  return make("div", "wb-detail", parts);
}
