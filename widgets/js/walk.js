// A small fleet step by step: the steps, and what each server claims and holds after the chosen one.

function draw(body, data, send) {
  const steps = data.steps || [];
  body.append(make("h3", "", data.title), make("p", "", data.shows));
  const go = (to) => send("go", { to });
  body.append(make("div", "wb-row", [
    button("|◀", "first", () => go(0), "the first step", data.at <= 0),
    button("◀", "back", () => go(data.at - 1), "a step back", data.at <= 0),
    button("▶", "on", () => go(data.at + 1), "a step on", data.at >= steps.length - 1),
    button("▶|", "last", () => go(steps.length - 1), "the last step", data.at >= steps.length - 1),
    make("span", "wb-number", `step ${number(data.at + 1)} of ${number(steps.length)}`),
    data.agree ? verdict("present", "all servers hold the same") : verdict("pending", "the servers do not hold the same"),
  ]));
  const rows = steps.map((one, index) => {
    const line = make("tr", index === data.at ? "wb-pick wb-chosen" : index > data.at ? "wb-pick wb-faint" : "wb-pick", [
      make("td", "wb-right", number(index + 1)),
      make("td", "wb-wrap", [verdict(one.verdict, one.says), one.refused ? make("div", "wb-faint", one.refused) : null,
        one.back ? make("div", "", `gone again: ${one.back}`) : null]),
    ]);
    return pressable(line, `step-${index}`, () => go(index));
  });
  const held = data.servers.map((one) => make("tr", one.concerned ? "wb-chosen" : "", [
    make("th", "", one.name), make("td", "wb-wrap", marked_list(one.vector)), make("td", "wb-wrap", marked_list(one.values))]));
  const head = make("tr", "", ["server", "claims: origin first/last", "holds"].map((text) => make("th", "", text)));
  body.append(make("div", "wb-beside", [
    make("div", "wb-scroll wb-tall", make("table", "wb-table", make("tbody", "", rows))),
    make("div", "wb-scroll wb-tall", make("table", "wb-table", [make("thead", "", head), make("tbody", "", held)])),
  ]));
}

// What the step made is in bold letters and marked by a sign.
function marked_list(some) {
  return some.map((one) => make("div", one.new ? "wb-name" : "", `${one.new ? "◆ " : ""}${one.text}`));
}
