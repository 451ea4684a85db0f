// A lane for each transaction: its pieces as they reached the log, what became of them, and its end.

const LEFT = 200;
const RIGHT = 980;
const ROW = 34;
const PIECE = { kept: "present", cancelled: "stranded", open: "pending", again: "nothing" };
const STATE = { kept: "count", cancelled: "taken back", open: "undecided: no end, or not whole", again: "came again" };
const AXIS = { order: "in the order in which the pieces came", log: "by place in the log", time: "by time (UTC)" };

function draw(body, data, send) {
  const lanes = data.lanes || [];
  body.append(make("h3", "", [make("span", "", `${data.server}: `), make("span", "wb-plain", data.which)]));
  if (!lanes.length) body.append(make("p", "wb-faint", "There are no such transactions in this log."));
  else {
    const tall = lanes.length * ROW + 34;
    const words = "Transactions with their pieces from left to right; the table below says the same in numbers.";
    const svg = draw_svg("svg", { viewBox: `0 0 ${RIGHT + 20} ${tall}`, width: RIGHT + 20, role: "group", "aria-label": words });
    const axis = Object.hasOwn(AXIS, data.by) ? data.by : "order";
    const wide = Math.max(5, Math.min(22, ((RIGHT - LEFT) / Math.max(1, data.pieces)) * 0.7));
    const most = Math.max(1, ...lanes.flatMap((lane) => lane.marks.map((mark) => mark.rows)));
    lanes.forEach((lane, l) => svg.append(pressable(one_lane(lane, l * ROW + 6, axis, wide, most), `lane-${l}`, () => send("pick", { index: l }))));
    const ends = axis === "time" ? [data.from, data.to] : axis === "log" ? [`byte ${number(data.first)}`, `byte ${number(data.last)}`] : ["first piece", "last piece"];
    const y = tall - 8;
    svg.append(draw_svg("text", { x: LEFT, y, class: "wb-faint" }, ends[0]), draw_svg("text", { x: RIGHT, y, "text-anchor": "end", class: "wb-faint" }, ends[1]),
      draw_svg("text", { x: (LEFT + RIGHT) / 2, y, "text-anchor": "middle", class: "wb-faint" }, AXIS[axis]));
    body.append(make("div", "wb-scroll wb-wide", svg));
    body.append(make("div", "wb-row wb-faint", [verdict("present", "full bar: rows that count"), verdict("stranded", "struck bar: taken back"),
      verdict("pending", "empty bar: undecided"), make("span", "", "▌ its end"), make("span", "", "↩ a ROLLBACK, of all or of a statement"),
      make("span", "", "taller: more rows")]));
    body.append(numbers(lanes, send));
  }
  if (!data.in_order) body.append(make("p", "wb-faint", "This log is in the order of numbers: it tells when each transaction was committed, and not how the pieces came."));
  if (data.number > 1 || data.more) body.append(turns(data, send));
  if (data.picked) body.append(about(data.picked));
  else if (lanes.length) body.append(make("p", "wb-faint", "Click a transaction for its pieces, what a replica may do with them, and who has it."));
}

function one_lane(lane, y, axis, wide, most) {
  const x = (mark) => LEFT + 14 + (RIGHT - LEFT - 28) * mark[axis];
  const middle = y + ROW / 2 - 3;
  const name = shown(lane.position);
  const group = draw_svg("g", { class: lane.chosen ? "wb-bar wb-chosen-bar" : "wb-bar" }, [
    draw_svg("rect", { x: 0, y, width: RIGHT, height: ROW - 4, class: "wb-hit" }),
    draw_svg("text", { x: LEFT - 12, y: middle, "text-anchor": "end", "font-weight": 600 }, name.length > 24 ? name.slice(0, 23) + "…" : name),
    draw_svg("text", { x: LEFT - 12, y: middle + 13, "text-anchor": "end", class: "wb-faint" }, `${outcome(lane)}, ${rows_of(lane.seen)}`),
  ]);
  const marks = lane.marks;
  if (!marks.length) return group;
  const last = marks[marks.length - 1];
  group.append(draw_svg("line", { x1: x(marks[0]), y1: middle, x2: x(last), y2: middle, class: `wb-line wb-edge-${known_verdict(lane.verdict)}` }));
  for (const mark of marks) group.append(piece(mark, x(mark), middle, wide, most, lane));
  if (lane.outcome === "committed")
    group.append(hover_svg(draw_svg("rect", { x: x(last) + wide / 2 + 2, y: middle - 11, width: 3, height: 22, class: "wb-end" }), "its end: committed"));
  return group;
}

function piece(mark, x, middle, wide, most, lane) {
  const high = mark.rows ? 5 + 15 * Math.sqrt(mark.rows / most) : 4;
  const kind = Object.hasOwn(PIECE, mark.state) ? mark.state : "open";
  const shape = { x: x - wide / 2, y: middle - high / 2, width: wide, height: high };
  const hollow = kind === "open" || kind === "again";
  const parts = [draw_svg("rect", { ...shape, class: hollow ? `wb-box wb-stroke-${PIECE[kind]}` : `wb-fill-${PIECE[kind]}` })];
  if (kind === "cancelled" && mark.rows)
    parts.push(draw_svg("line", { x1: shape.x - 2, y1: middle + high / 2 + 2, x2: shape.x + wide + 2, y2: middle - high / 2 - 2, class: "wb-strike" }));
  if (mark.back) parts.push(draw_svg("text", { x, y: middle + 5, "text-anchor": "middle", class: "wb-mark" }, "↩"));
  return hover_svg(draw_svg("g", {}, parts), `${lane.position}: ${piece_says(mark)}`);
}

function piece_says(mark) {
  const which = mark.count > 1 ? `${number(mark.count)} messages` : mark.segment === null ? "message" : `message ${number(mark.segment)}`;
  const kept = mark.kept === null || mark.kept === mark.rows ? "" : `, ${number(mark.kept)} of them count`;
  const back = mark.back === "transaction" ? ", ROLLBACK" : mark.back ? ", ROLLBACK of a statement" : "";
  return `${which} at byte ${number(mark.offset)}, ${mark.at || "no time"}: ${rows_of(mark.rows)}${kept} (${entry(STATE, mark.state, mark.state)})${back}`;
}

function rows_of(count) {
  return count === 1 ? "1 row" : `${number(count)} rows`;
}

function outcome(lane) {
  return shown(lane.outcome).replace("_", " ");
}

function numbers(lanes, send) {
  const columns = [{ key: "position", label: "transaction", kind: "position" }, { key: "origin", label: "origin" }, { key: "says_it", label: "outcome" },
    { key: "messages", label: "messages", kind: "number" }, { key: "seen", label: "rows", kind: "number" }, { key: "kept", label: "count", kind: "number" },
    { key: "ahead", label: "before its end", kind: "number" }, { key: "undo", label: "to undo", kind: "number" },
    { key: "at_risk", label: "at risk", kind: "number" }, { key: "seconds", label: "open (s)" }, { key: "meanwhile", label: "commits meanwhile", kind: "number" }];
  const rows = lanes.map((lane) => ({ ...lane, says_it: outcome(lane), seconds: lane.open === null ? "" : Number(lane.open).toLocaleString("en-US", { maximumFractionDigits: 3 }) }));
  return table(columns, rows, (row, index) => send("pick", { index }));
}

function about(picked) {
  const parts = [make("h3", "", picked.title), ...picked.says.map((one) => make("p", "", one))];
  const rows = picked.marks.map((mark) => ({ ...mark, which: mark.count > 1 ? `${number(mark.count)} messages` : mark.segment === null ? "-" : number(mark.segment),
    what: `${entry(STATE, mark.state, mark.state)}${mark.back ? ", ROLLBACK" : ""}` }));
  parts.push(make("h3", "", `Its pieces${picked.count > rows.length ? `, the first ${number(rows.length)} of ${number(picked.count)}` : ""}`));
  parts.push(table([{ key: "which", label: "message" }, { key: "offset", label: "byte", kind: "number" }, { key: "at", label: "closed (UTC)" },
    { key: "rows", label: "rows", kind: "number" }, { key: "kept", label: "count", kind: "number" }, { key: "what", label: "" }], rows));
  if (picked.rows.length)
    parts.push(make("h3", "", "Rows to apply"), table([{ key: "table", label: "table" }, { key: "operation", label: "operation" }, { key: "rows", label: "rows", kind: "number" }], picked.rows));
  parts.push(about_change(picked.story));
  return make("div", "wb-detail", parts);
}
