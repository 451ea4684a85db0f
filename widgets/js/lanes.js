// One lane for each server: bars for the changes in its log, and below them what is missing, unknown or on its way.

const LANE = 58;
const LEFT = 130;
const RIGHT = 960;

function draw(body, data, send) {
  const lanes = data.lanes || [];
  if (!lanes.length) {
    body.append(make("p", "wb-faint", "The positions of this system carry no time, or no log and no vector was collected."));
    return;
  }
  const high = lanes.length * LANE + 34;
  const svg = draw_svg("svg", { viewBox: `0 0 ${RIGHT + 20} ${high}`, width: RIGHT + 20, role: "img" });
  const width = (RIGHT - LEFT) / data.bins;
  const most = Math.max(1, ...lanes.flatMap((one) => one.counts));
  const from = Date.parse(data.from);
  const to = Date.parse(data.to);
  lanes.forEach((lane, l) => svg.append(one_lane(lane, l, width, most, from, to, data.bins, send)));
  svg.append(axis(from, to, lanes.length * LANE + 6));
  if (data.position) svg.append(...marked(data, lanes));
  body.append(make("div", "wb-scroll wb-wide", svg));
  body.append(make("div", "wb-row wb-faint", [verdict("present", "in its log"), verdict("missing", "missing"), verdict("unknown", "unknown"),
    verdict("pending", "on its way"), data.position ? make("span", "", ["◆ ", position(data.position, data.made_at), " where it arrived"]) : null]));
  if (data.says) body.append(make("p", "wb-faint", `No change is marked: ${data.says}`));
  if (data.picked) body.append(about_bar(data.picked));
  else body.append(make("p", "wb-faint", "Click a bar for its changes. Times are those of the positions, UTC."));
}

function one_lane(lane, l, width, most, from, to, bins, send) {
  const base = l * LANE + 38;
  const name = shown(lane.server);
  const group = draw_svg("g");
  group.append(
    hover_svg(draw_svg("text", { x: LEFT - 10, y: base - 8, "text-anchor": "end", "font-weight": 600 }, name.length > 16 ? name.slice(0, 15) + "…" : name), name),
    draw_svg("line", { x1: LEFT, y1: base, x2: RIGHT, y2: base, class: "wb-axis" }),
  );
  if (!lane.log) group.append(draw_svg("text", { x: LEFT + 6, y: base - 8, class: "wb-faint" }, shown(lane.no_log)));
  const stretch = (kind, [first, last]) => draw_svg("rect", {
    x: LEFT + first * width, y: base + 2, width: Math.max(2, (last - first + 1) * width), height: 7, class: `wb-fill-${kind}`,
  });
  for (const one of lane.unknown) group.append(hover_svg(stretch("unknown", one), "unknown: the evidence does not reach"));
  for (const one of lane.pending) group.append(hover_svg(stretch("pending", one), "on its way"));
  for (let bin = 0; bin < bins; bin++) {
    const count = lane.counts[bin];
    const missing = lane.missing[bin] || 0;
    const stranded = lane.stranded[bin] || 0;
    if (!count && !missing && !stranded) continue;
    const x = LEFT + bin * width;
    const tall = count ? 4 + 26 * Math.sqrt(count / most) : 0;
    const bar = draw_svg("g", { class: "wb-bar" }, [
      draw_svg("rect", { x, y: base - 32, width: width, height: 42, class: "wb-hit" }),
      draw_svg("rect", { x: x + 0.5, y: base - tall, width: Math.max(1, width - 1), height: tall, class: "wb-fill-present" }),
      missing ? draw_svg("rect", { x: x + 0.5, y: base + 1, width: Math.max(2, width - 1), height: 9, class: "wb-fill-missing" }) : null,
      stranded ? draw_svg("rect", { x: x + 0.5, y: base + 1, width: Math.max(2, width - 1), height: 9, class: "wb-fill-stranded" }) : null,
    ]);
    const at = clock(from + ((to - from) * bin) / bins);
    const words = [`${number(count)} in its log`, missing ? `${number(missing)} missing` : "", stranded ? `${number(stranded)} stranded` : ""];
    hover_svg(bar, `${name}, from ${at}: ${words.filter(Boolean).join(", ")}`);
    group.append(pressable(bar, `bar-${l}-${bin}`, () => send("pick", { lane: l, bin })));
  }
  return group;
}

function clock(time) {
  return new Date(time).toISOString().slice(0, 19).replace("T", " ");
}

function axis(from, to, y) {
  const group = draw_svg("g");
  const day = to - from > 36 * 3600 * 1000;
  for (let n = 0; n <= 6; n++) {
    const x = LEFT + ((RIGHT - LEFT) * n) / 6;
    const text = clock(from + ((to - from) * n) / 6);
    const anchor = n === 0 ? "start" : n === 6 ? "end" : "middle";
    if (n === 0 && !day) group.append(draw_svg("text", { x: LEFT - 10, y: y + 14, "text-anchor": "end", class: "wb-faint" }, text.slice(0, 10)));
    group.append(draw_svg("line", { x1: x, y1: y - 4, x2: x, y2: y, class: "wb-axis" }));
    group.append(draw_svg("text", { x, y: y + 14, "text-anchor": anchor, class: "wb-faint" }, day ? text.slice(0, 16) : text.slice(11)));
  }
  return group;
}

function marked(data, lanes) {
  const marks = [];
  const place = (at) => LEFT + (RIGHT - LEFT) * Math.min(1, Math.max(0, at));
  if (data.made !== null && data.made >= 0 && data.made <= 1)
    marks.push(draw_svg("line", { x1: place(data.made), y1: 4, x2: place(data.made), y2: lanes.length * LANE + 2, class: "wb-mark" }));
  for (const one of data.arrivals || []) {
    const l = lanes.findIndex((lane) => lane.server === one.server);
    if (l < 0 || one.at === null) continue;
    const hover = `${one.server}: ${one.outcome} ${one.when}${one.at > 1 ? ", behind the end of this picture" : ""}`;
    marks.push(hover_svg(draw_svg("text", { x: place(one.at), y: l * LANE + 14, "text-anchor": "middle" }, "◆"), hover));
  }
  return marks;
}

function about_bar(picked) {
  const more = picked.count > picked.rows.length ? `, the first ${picked.rows.length} of them` : "";
  return make("div", "wb-detail", [
    make("h3", "", `${picked.server}, ${picked.from} to ${picked.to}: ${number(picked.count)} changes${more}`),
    table([{ key: "position", label: "change", kind: "position" }, { key: "at", label: "made (UTC)" }, { key: "origin", label: "origin" },
      { key: "verdict", label: "on this server", kind: "verdict" }], picked.rows.map((row) => ({ ...row, position_at: row.at }))),
  ]);
}
