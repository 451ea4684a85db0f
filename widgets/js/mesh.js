// The servers on a circle, links as arrows beside each other, words on those over which something is to be said.

const WIDE = 900;
const LOWEST = 420;
const MOST = 16; // servers on the circle: of more, those at rest are left out
let HIGH = LOWEST;
let BOX = { width: 200, height: 46 };

function draw(body, data, send) {
  const [servers, left] = drawn_ones(data);
  HIGH = Math.max(LOWEST, servers.length * 48);
  BOX = { width: servers.length > 6 ? 136 : 200, height: 46 };
  if (!servers.length) {
    body.append(make("p", "wb-faint", "No server was collected."));
    return;
  }
  const places = new Map(servers.map((one, index) => [one.name, place(index, servers.length)]));
  const heights = [...places.values()].map((at) => at.y);
  const [top, low] = [Math.min(...heights) - BOX.height, Math.max(...heights) + BOX.height];
  const svg = draw_svg("svg", { viewBox: `0 ${top} ${WIDE} ${low - top}`, width: WIDE, role: "img" });
  svg.append(heads());
  const words = draw_svg("g");
  (data.links || []).forEach((link, index) => {
    const from = places.get(link.supplier);
    const to = places.get(link.consumer);
    if (!from || !to || from === to) return;
    const [line, label] = arrow(link, from, to, index === data.chosen, servers.length);
    const hover = `${link.supplier} → ${link.consumer} (${link.name})\n${link.says}`;
    const group = draw_svg("g", { class: "wb-link" }, [hover_svg(line.wide, hover), line.thin]);
    pressable(group, `link-${index}`, () => send("pick", { index }));
    svg.append(group);
    if (label) words.append(label);
  });
  svg.append(words);
  servers.forEach((one) => svg.append(box(one, places.get(one.name))));
  body.append(svg, legend(data.shades));
  if (left) body.append(make("p", "wb-faint", `${number(left)} of ${number(servers.length + left)} servers are not drawn: those of which least is to be told.`));
  if (data.pair) body.append(about_pair(data.pair, data.says));
  else body.append(make("p", "wb-faint", (data.links || []).length ? "Click a link for what would go over it, and why." : data.no_links));
}

// Of many servers those of which most is to be told, in the order of their names.
function drawn_ones(data) {
  const all = data.servers || [];
  if (all.length <= MOST) return [all, 0];
  const told = new Map(all.map((one) => [one.name, weight(one.verdict)]));
  for (const link of data.links || [])
    for (const name of [link.supplier, link.consumer]) if (told.has(name)) told.set(name, told.get(name) + weight(link.verdict) / 10);
  const kept = new Set([...all].sort((one, other) => told.get(other.name) - told.get(one.name)).slice(0, MOST).map((one) => one.name));
  return [all.filter((one) => kept.has(one.name)), all.length - MOST];
}

function weight(verdict) {
  return ["nothing", "present", "pending", "unknown", "stranded", "missing"].indexOf(known_verdict(verdict));
}

function place(index, count) {
  if (count === 1) return { x: WIDE / 2, y: HIGH / 2 };
  const turn = (2 * Math.PI * index) / count - Math.PI / 2 - (count === 2 ? Math.PI / 2 : 0);
  return { x: WIDE / 2 + Math.cos(turn) * (WIDE / 2 - 130), y: HIGH / 2 + Math.sin(turn) * (HIGH / 2 - 50) };
}

function heads() {
  const defs = draw_svg("defs");
  for (const name of VERDICTS) {
    const marker = draw_svg("marker", {
      id: `wb-head-${name}`, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse",
    });
    marker.append(draw_svg("path", { d: "M0,0 L10,5 L0,10 z", class: `wb-fill-${name}` }));
    defs.append(marker);
  }
  return defs;
}

// Each direction of a pair has its own line, a little to its right.
function arrow(link, from, to, chosen, count) {
  const name = known_verdict(link.verdict);
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  const [ux, uy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const [nx, ny] = [-uy * 9, ux * 9];
  const start = edge(from, ux, uy);
  const end = edge(to, -ux, -uy);
  const ends = { x1: start.x + nx, y1: start.y + ny, x2: end.x + nx, y2: end.y + ny };
  const thin = draw_svg("line", {
    ...ends, class: `wb-line wb-stroke-${name}${count > 8 && name === "present" ? " wb-at-rest" : ""}${chosen ? " wb-line-chosen" : ""}`, "marker-end": `url(#wb-head-${name})`,
    ...(link.enabled === false ? { "stroke-dasharray": "6 5" } : {}),
  });
  const wide = draw_svg("line", { ...ends, class: "wb-line-wide" });
  const words = shown(link.label);
  if (!words || (count > 8 && name === "present")) return [{ wide, thin }, null];
  const at = { x: start.x + (end.x - start.x) * 0.38 + nx * 2.4, y: start.y + (end.y - start.y) * 0.38 + ny * 2.4 };
  const width = Math.min(words.length, 22) * 6.6 + 12;
  const label = draw_svg("g", { class: "wb-word" }, [
    draw_svg("rect", { x: at.x - width / 2, y: at.y - 10, width, height: 20, rx: 3, class: `wb-wordback wb-edge-${name}` }),
    draw_svg("text", { x: at.x, y: at.y + 4, "text-anchor": "middle" }, words.length > 22 ? words.slice(0, 21) + "…" : words),
  ]);
  return [{ wide, thin }, label];
}

// Where a line that leaves the middle of a box crosses its border.
function edge(middle, ux, uy) {
  const reach = Math.min((BOX.width / 2 + 6) / Math.max(Math.abs(ux), 1e-9), (BOX.height / 2 + 6) / Math.max(Math.abs(uy), 1e-9));
  return { x: middle.x + ux * reach, y: middle.y + uy * reach };
}

function box(one, at) {
  const name = known_verdict(one.verdict);
  const full = shown(one.name);
  const most = BOX.width > 150 ? 24 : 16;
  const title = full.length > most ? full.slice(0, most - 1) + "…" : full;
  const says = shown(one.says);
  const group = draw_svg("g", {}, [
    draw_svg("rect", {
      x: at.x - BOX.width / 2, y: at.y - BOX.height / 2, width: BOX.width, height: BOX.height, rx: 5,
      class: `wb-box wb-edge-${name}`, ...(one.collected ? {} : { "stroke-dasharray": "4 4" }),
    }),
    draw_svg("rect", { x: at.x - BOX.width / 2, y: at.y - BOX.height / 2, width: 7, height: BOX.height, rx: 3, class: `wb-fill-${name}` }),
    draw_svg("text", { x: at.x + 3, y: at.y - 4, "text-anchor": "middle", "font-weight": 600 }, title),
    draw_svg("text", { x: at.x + 3, y: at.y + 13, "text-anchor": "middle", class: "wb-faint" }, says.length > most + 3 ? says.slice(0, most + 2) + "…" : says),
  ]);
  return hover_svg(group, `${full}${one.origin ? `, origin ${one.origin}` : ""}\n${says}`);
}

function legend(shades) {
  return make("div", "wb-row wb-faint", (shades || []).filter((one) => one.name !== "nothing").map((one) => verdict(one.name, one.name, one.says)));
}

function about_pair(pair, says) {
  const parts = [make("h3", "", `${pair.title}: ${pair.decision}`)];
  if (says) parts.push(make("p", "", says));
  if (pair.anchor) parts.push(make("p", "", [make("span", "", "anchor "), position(pair.anchor, pair.anchor_at)]));
  if (pair.reasons && pair.reasons.length)
    parts.push(table([{ key: "says", label: "why" }, { key: "values", label: "compared" }], pair.reasons));
  if (pair.to_send && pair.to_send.length)
    parts.push(
      make("h3", "", "would be sent"),
      table(
        [{ key: "origin", label: "origin" }, { key: "count", label: "changes", kind: "number" },
          { key: "first", label: "first", kind: "position" }, { key: "last", label: "last", kind: "position" }],
        pair.to_send,
      ),
    );
  for (const other of pair.others || [])
    parts.push(make("p", "wb-faint", `rule set ${other.rules}: ${other.decision}`));
  return make("div", "wb-detail", parts);
}
