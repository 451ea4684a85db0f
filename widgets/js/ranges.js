// Of each origin one bar for every server on one line of time; below them what two servers answer each other.

const LEFT = 150;
const RIGHT = 960;
const ROW = 22;
const HEAD = 26;

function draw(body, data, send) {
  const origins = data.origins || [];
  const high = origins.reduce((sum, one) => sum + HEAD + one.bars.length * ROW + 10, 0) + 26;
  const svg = draw_svg("svg", { viewBox: `0 0 ${RIGHT + 120} ${high}`, width: RIGHT + 120, role: "img" });
  let y = 0;
  origins.forEach((one, o) => {
    const title = draw_svg("text", { x: 4, y: y + 17, "font-weight": 600 }, one.made_on ? `origin ${one.origin} (${one.made_on})` : `origin ${one.origin}, of no collected server`);
    svg.append(title);
    y += HEAD;
    one.bars.forEach((bar, b) => {
      svg.append(one_bar(bar, one.origin, y, data, (more) => send("pick", { origin: o, bar: b, ...more }), `bar-${o}-${b}`));
      y += ROW;
    });
    y += 10;
  });
  for (const [x, text, anchor] of [[LEFT, data.from, "start"], [RIGHT, data.to, "end"]])
    svg.append(draw_svg("text", { x, y: y + 14, "text-anchor": anchor, class: "wb-faint" }, text || ""));
  body.append(make("div", "wb-scroll wb-wide", svg));
  if (data.total > origins.length) body.append(pager(data.first, origins.length, data.total, (by) => send("page", { by })));
  body.append(make("div", "wb-row wb-faint", [verdict("present", "listed"), verdict("unknown", "listed, and as a supplier left out: too long ago"),
    verdict("pending", "more is known of it, and has not arrived"), verdict("stranded", "a gap longer than servers remember"),
    make("span", "", "┊ what lies before is forgotten next"), make("span", "", "◂ begins at time 0, which is no change")]));
  if (data.pair) body.append(make("div", "wb-detail", data.pair.map(way)));
  else body.append(make("p", "wb-faint", data.ends && data.ends[1]
    ? `Click a bar of another server to compare it with ${data.ends[1]}.` : "Click the bars of two servers to compare them."));
}

function one_bar(bar, origin, y, data, pick, key) {
  const x = (part) => LEFT + (RIGHT - LEFT) * part;
  const name = shown(bar.server);
  const label = draw_svg("text", { x: LEFT - 12, y: y + 14, "text-anchor": "end" }, name.length > 20 ? name.slice(0, 19) + "…" : name);
  const parts = [draw_svg("rect", { x: 0, y, width: RIGHT, height: ROW, class: "wb-hit" }), label,
    draw_svg("line", { x1: LEFT, y1: y + 11, x2: RIGHT, y2: y + 11, class: "wb-rule" })];
  const hover = [`${name}, origin ${origin}`];
  if (bar.last === null) {
    parts.push(draw_svg("text", { x: LEFT + 6, y: y + 15, class: "wb-faint" }, "lists nothing of it"));
    hover.push("lists nothing of it");
  } else {
    hover.push(`from ${bar.first} (${bar.zero ? "time 0: no change" : bar.first_at})`, `to ${bar.last} (${bar.last_at})`);
    if (bar.listed !== null) hover.push(`lists ${number(bar.listed)}, of which it forgets ${number(bar.forgets)} next`);
    if (!bar.shows) hover.push("as a supplier it leaves the origin out: its last position is older than it remembers");
    if (bar.waits) hover.push(`${number(bar.waits)} changes of it have not arrived`);
    if (bar.outside) parts.push(draw_svg("text", { x: LEFT + 6, y: y + 15, class: "wb-faint" }, "lies outside this time"));
    else {
      const [begin, end] = [x(bar.begin), x(bar.end)];
      parts.push(draw_svg("rect", { x: begin, y: y + 5, width: Math.max(4, end - begin), height: 12, rx: 2, class: `wb-fill-${bar.shows ? "present" : "unknown"}` }));
      if (bar.places) parts.push(draw_svg("rect", { x: x(bar.places[0]), y: y + 8, width: Math.max(3, x(bar.places[1]) - x(bar.places[0])), height: 6, class: "wb-fill-stranded" }));
      if (bar.zero) parts.push(draw_svg("text", { x: begin - 10, y: y + 16 }, "◂"));
      if (bar.waits) parts.push(draw_svg("text", { x: end + 8, y: y + 15, class: "wb-faint" }, `… ${number(bar.waits)} more`));
      if (bar.gap) hover.push(`nothing between ${bar.gap[0]} and ${bar.gap[1]}`);
    }
  }
  const cut = Object.hasOwn(data.cuts, bar.server) ? data.cuts[bar.server] : null;
  if (cut && cut.place !== null) {
    parts.push(draw_svg("line", { x1: x(cut.place), y1: y + 1, x2: x(cut.place), y2: y + ROW - 1, class: "wb-mark" }));
    hover.push(`forgets at its next purge what was made before ${cut.at}`);
  }
  const chosen = (data.ends || []).includes(bar.server);
  const group = draw_svg("g", { class: chosen ? "wb-bar wb-chosen-bar" : "wb-bar" }, parts);
  hover_svg(group, hover.join("\n"));
  return pressable(group, key, () => pick({}));
}

function way(one) {
  const parts = [make("h3", "", `${one.consumer} pulls from ${one.supplier}`),
    make("p", "", [verdict(one.verdict, one.decision), make("span", "", one.message ? `, answered with ${one.message}` : ""),
      make("span", "wb-faint", one.link ? ` over ${one.link}` : " (no link)")])];
  if (one.why) parts.push(make("p", "wb-faint", one.why));
  const end = (words, at, text) => make("td", "", [make("span", "", `${words} `), position(at || text, text)]);
  const rows = one.rows.map((row) => make("tr", "", [
    make("td", "", row.what), make("td", "wb-text", row.made_on || row.origin, row.origin), end(row.from_says, row.from_at, row.from),
    end(row.to_says, row.to_at, row.to), make("td", "wb-right", number(row.count))]));
  const head = make("tr", "", ["", "origin of", "from (UTC)", "to (UTC)", "changes"].map((text) => make("th", "", text)));
  if (rows.length) parts.push(make("div", "wb-scroll", make("table", "wb-table", [make("thead", "", head), make("tbody", "", rows)])));
  for (const other of one.others) parts.push(make("p", "wb-faint", `rule set ${other.rules}: ${other.decision}${other.why ? `: ${other.why}` : ""}`));
  return make("section", "", parts);
}
