// Which entries differ on two servers, and one of them side by side.

function draw(body, data, send) {
  if ((data.servers || []).length < 2) {
    body.append(make("p", "wb-faint", "The entries of fewer than two servers were collected: workbench collect --entries."));
    return;
  }
  const choice = (key, index) => {
    const list = make("select", "wb-select", data.servers.map((name) => make("option", "", name)));
    list.selectedIndex = data.servers.indexOf(data.pair[index]);
    list.dataset.key = key;
    return list;
  };
  const one = choice("one", 0);
  const other = choice("other", 1);
  const named = make("input");
  named.type = "text";
  named.placeholder = "part of a name";
  named.value = data.named || "";
  named.dataset.key = "named";
  const compare = () => send("pair", { one: one.selectedIndex, other: other.selectedIndex, named: named.value });
  one.addEventListener("change", compare);
  other.addEventListener("change", compare);
  named.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") compare();
  });
  body.append(make("div", "wb-row", [one, make("span", "", "against"), other, named, button("Compare", "compare", compare)]));
  if (data.working) {
    const { done, total } = data.working;
    const bar = draw_svg("svg", { class: "wb-progress", viewBox: "0 0 300 10", width: 300, height: 10 }, [
      draw_svg("rect", { class: "wb-progress-all", x: 0, y: 0, width: 300, height: 10, rx: 2 }),
      draw_svg("rect", { class: "wb-progress-part", x: 0, y: 0, width: total ? (300 * done) / total : 0, height: 10, rx: 2 }),
    ]);
    const words = total ? `${number(done)} of ${number(total)} values` : "getting ready";
    body.append(make("div", "wb-row", [bar, make("span", "wb-number", words), button("Cancel", "cancel-entries", () => send("cancel"))]));
    return;
  }
  if (data.large) {
    const begin = button("Compare them all with Spark", "large", () => send("large"));
    body.append(make("p", "", "These are many entries: comparing them takes a Spark job."), begin);
    return;
  }
  if (!data.rows.length) {
    body.append(make("p", "", [verdict("present", data.named ? "no entry of such a name differs" : "no entry differs")]));
    return;
  }
  const shownRows = data.rows.map((row, index) => ({ ...row, chosen: index === data.chosen,
    says: !row.one ? `only on ${data.pair[1]}` : !row.other ? `only on ${data.pair[0]}` : "differs" }));
  const more = data.total > data.rows.length ? `, the first ${number(data.rows.length)} of them` : "";
  body.append(make("h3", "", `${number(data.total)} entries differ${more}`));
  body.append(table(
    [{ key: "target", label: "entry" }, { key: "says", label: "" }, { key: "one", label: `values on ${data.pair[0]}`, kind: "number" },
      { key: "other", label: `on ${data.pair[1]}`, kind: "number" }],
    shownRows, (row, index) => send("pick", { index })));
  if (data.entry) body.append(about_entry(data.entry, data.pair));
}

function about_entry(entry, pair) {
  const side = (end, name) => [{ key: end, label: name, kind: "made" }];
  return make("div", "wb-detail", [
    make("h3", "", entry.target),
    make("p", "wb-faint", `${number(entry.same)} of its values are on both, ${number(entry.differing)} are not${entry.differing > entry.states.length ? `, the first ${number(entry.states.length)} of them` : ""}:`),
    table([{ key: "attribute", label: "attribute" }, { key: "value", label: "value" }, ...side("one", pair[0]), ...side("other", pair[1])], entry.states),
  ]);
}
