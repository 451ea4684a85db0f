// Helpers of every view. Text from data reaches the page through `shown` and `textContent` only: never as markup, never as
// a link, an id, a style or a handler.

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;
const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 2000;

// No control sequences, nothing that turns the direction of a line: escaped as the terminal shows them.
function shown(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const cut = text.length > LONGEST ? text.slice(0, LONGEST) + " …" : text;
  return cut.replace(CONTROL, (letter) => {
    const code = letter.codePointAt(0);
    const [sign, digits] = code < 0x100 ? ["\\x", 2] : code < 0x10000 ? ["\\u", 4] : ["\\U", 8];
    return sign + code.toString(16).padStart(digits, "0");
  });
}

function number(value) {
  return value === null || value === undefined ? "" : Number(value).toLocaleString("en-US");
}

// make("td", "wb-right", "12") or make("div", "", [child, child])
function make(tag, classes, content, hover) {
  const node = document.createElement(tag);
  if (classes) node.className = classes;
  fill(node, content);
  if (hover) node.title = shown(hover);
  return node;
}

function fill(node, content) {
  if (Array.isArray(content)) node.append(...content.filter((one) => one !== null && one !== undefined));
  else if (content instanceof Node) node.append(content);
  else if (content !== null && content !== undefined) node.textContent = shown(content);
}

// Numbers and fixed words only go into attributes; text goes through `label`.
function draw_svg(tag, attributes, content) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  fill(node, content);
  return node;
}

function hover_svg(node, text) {
  node.append(draw_svg("title", {}, shown(text)));
  return node;
}

// A button that can be found again after the view was drawn anew: the focus stays where it was.
function button(text, key, pressed, hover, off) {
  const node = make("button", "wb-button", text, hover);
  node.type = "button";
  node.dataset.key = key;
  node.disabled = Boolean(off);
  node.addEventListener("click", pressed);
  return node;
}

function pressable(node, key, pressed) {
  node.dataset.key = key;
  node.setAttribute("tabindex", "0");
  node.setAttribute("role", "button");
  node.addEventListener("click", pressed);
  node.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pressed(event);
    }
  });
  return node;
}

// A position as the system writes it, with the time that it holds on hover.
function position(text, at) {
  return make("code", "wb-position", text, at ? `${text}\nmade ${at} UTC by the clock of its origin` : text);
}

function verdict(name, text, hover) {
  return make("span", `wb-verdict wb-${known_verdict(name)}`, text, hover);
}

// The entry of a table of words by a name that may come from data: `constructor` is no entry.
function entry(words, name, otherwise) {
  return Object.hasOwn(words, name) ? words[name] : otherwise;
}

const VERDICTS = ["present", "missing", "unknown", "pending", "stranded", "nothing"];

function known_verdict(name) {
  return VERDICTS.includes(name) ? name : "nothing";
}

// columns: [{key, label, kind}] with kind text, position, number, verdict, made; rows: objects, `at` of a position in `key + "_at"`.
function table(columns, rows, picked) {
  const head = make("tr", "", columns.map((one) => make("th", one.kind === "number" ? "wb-right" : "", one.label)));
  const body = rows.map((row, index) => {
    const cells = columns.map((one) => cell(one, row));
    const line = make("tr", row.chosen ? "wb-chosen" : "", cells);
    if (picked) {
      line.classList.add("wb-pick");
      pressable(line, `row-${index}`, () => picked(row, index));
    }
    return line;
  });
  return make("div", "wb-scroll", make("table", "wb-table", [make("thead", "", head), make("tbody", "", body)]));
}

function cell(column, row) {
  const value = row[column.key];
  if (column.kind === "number") return make("td", "wb-right", number(value));
  if (column.kind === "position") return make("td", "", value ? position(value, row[column.key + "_at"]) : "");
  if (column.kind === "verdict") return make("td", "", value ? verdict(value, value) : "");
  // What became of a value, and the change by which it did.
  if (column.kind === "made") {
    const [state, by] = [row[column.key + "_state"], row[column.key + "_position"]];
    return make("td", "", [make("span", state === "present" ? "" : "wb-faint", state || "-"), by ? make("span", "", " by ") : null,
      by ? position(by, row[column.key + "_position_at"]) : null]);
  }
  return make("td", "wb-text", value, value && String(value).length > 24 ? value : "");
}

// Where one is, and how to go on: "1 to 100 of 12,345".
function pager(first, count, total, more) {
  const last = first + count;
  const words = count ? `${number(first + 1)} to ${number(last)} of ${number(total)}` : "none";
  return make("div", "wb-pager", [
    button("◀", "page-back", () => more(-1), "the page before", first <= 0),
    make("span", "", words),
    button("▶", "page-on", () => more(1), "the next page", last >= total),
  ]);
}
