// Bars for operations, packed into lanes; below them one track for each rule set with a mark where the claim moves.

const LEFT = 130;
const RIGHT = 980;
const ROW = 18;

function draw(body, data) {
  body.append(make("h3", "", data.title));
  const operations = data.operations || [];
  if (!operations.length) {
    body.append(make("p", "wb-faint", "No log that was collected tells of operations here; choose a worked example instead."));
    return;
  }
  if (data.count > operations.length)
    body.append(make("p", "wb-faint", `${number(data.count)} operations, the first ${number(operations.length)} of them; choose a time to see others`));
  const lanes = packed(operations, data.span);
  const tall = lanes * ROW + 16 + data.tracks.length * 30 + 26;
  const svg = draw_svg("svg", { viewBox: `0 0 ${RIGHT + 20} ${tall}`, width: RIGHT + 20, role: "img" });
  const x = (at) => LEFT + ((RIGHT - LEFT) * at) / (data.span || 1);
  for (const one of operations) svg.append(bar(one, x, data.span));
  let y = lanes * ROW + 30;
  for (const track of data.tracks) {
    svg.append(draw_svg("text", { x: LEFT - 10, y: y + 4, "text-anchor": "end" }, shown(track.rules)));
    svg.append(draw_svg("line", { x1: LEFT, y1: y, x2: RIGHT, y2: y, class: "wb-axis" }));
    for (const move of track.moves) {
      const mark = draw_svg("rect", { x: x(move.at) - 2, y: y - 7, width: 4, height: 14, class: "wb-fill-pending" });
      svg.append(hover_svg(mark, `${track.rules}: the claim of origin ${move.origin} moves to ${move.max}${move.max_at ? ` (${move.max_at})` : ""}\n${move.why}`));
    }
    y += 30;
  }
  const ends = data.from ? [data.from.slice(0, 23).replace("T", " "), data.to.slice(11, 23)] : ["first step", "last step"];
  svg.append(draw_svg("text", { x: LEFT, y: tall - 4, class: "wb-faint" }, ends[0]));
  svg.append(draw_svg("text", { x: RIGHT, y: tall - 4, "text-anchor": "end", class: "wb-faint" }, ends[1]));
  body.append(make("div", "wb-scroll", svg));
  body.append(make("div", "wb-row wb-faint", [verdict("present", "committed"), verdict("stranded", "given up"), verdict("unknown", "its end is not logged"),
    verdict("pending", "the claim moves")]));
  const names = data.tracks.map((track) => track.rules);
  if (data.differ.length)
    body.append(make("h3", "", "what they claim in the end is not the same"),
      table([{ key: "origin", label: "origin" }, ...names.map((name) => ({ key: name, label: name, kind: "position" }))], data.differ));
  else if (names.length) body.append(make("p", "wb-faint", "In the end all rule sets claim the same here; hover the marks for when and why."));
  const held = data.tracks.flatMap((track) => track.held.map((one) => ({ rules: track.rules, ...one })));
  if (held.length)
    body.append(make("h3", "", "held back in the end"),
      table([{ key: "rules", label: "rule set" }, { key: "origin", label: "origin" }, { key: "position", label: "waits for", kind: "position" }], held));
}

// Each operation into the first lane that is free when it begins.
function packed(operations, span) {
  const free = [];
  for (const one of operations) {
    const end = one.end === null ? one.begin + span / 60 : one.end;
    let lane = free.findIndex((at) => at <= one.begin);
    if (lane < 0) lane = free.push(0) - 1;
    free[lane] = end + span / 400;
    one.lane = lane;
  }
  return free.length;
}

function bar(one, x, span) {
  const end = one.end === null ? Math.min(span, one.begin + span / 60) : one.end;
  const kind = one.how === "commit" ? "present" : one.how === "cancel" ? "stranded" : "unknown";
  const left = x(one.begin);
  const rect = draw_svg("rect", { x: left, y: one.lane * ROW + 4, width: Math.max(4, x(end) - left), height: ROW - 6, rx: 2, class: `wb-fill-${kind}` });
  const how = one.how === "commit" ? "committed" : one.how === "cancel" ? "given up" : "its end is not logged";
  return hover_svg(rect, `${one.position}${one.position_at ? ` (${one.position_at})` : ""}, origin ${one.origin}${one.thread === one.position ? "" : `, by ${one.thread}`}\n${how}`);
}
