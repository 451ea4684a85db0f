const SHOWN_STEPS = 100;
const COLOURS = { chosen: "present", proven: "pending", refused: "missing", "not proven": "unknown" };

function draw(body, data) {
  if (data.none) {
    body.append(make("p", "wb-faint", "No plan was made: the notebook 40_repair makes one."));
    return;
  }
  body.append(make("p", "wb-faint", `Plan ${data.id} for ${data.case}, made ${data.made_at} on snapshot ${data.snapshot}`));
  body.append(make("h3", "", "Before and after"));
  body.append(table([
    { key: "server", label: "server" },
    { key: "suffix", label: "suffix" },
    { key: "missing", label: "missing", kind: "number" },
    { key: "pending", label: "pending", kind: "number" },
    { key: "then_missing", label: "then missing", kind: "number" },
    { key: "then_pending", label: "then pending", kind: "number" },
  ], data.states));
  for (const one of data.needs) body.append(make("h3", "", one.need), courses(one.courses));
  body.append(make("h3", "", data.steps.length ? `Steps: ${number(data.steps.length)}` : "Nothing is to be done"));
  body.append(draw_steps(data.steps, SHOWN_STEPS));
  if (data.open.length) {
    body.append(make("h3", "", "Not mended by this plan"), ...data.open.map((one) => make("p", "", one)));
  }
}

function courses(rows) {
  const heads = ["", "way", "restores", "loses", "what is done, and why or why not"];
  const head = make("tr", "", heads.map((one, at) => make("th", at === 2 || at === 3 ? "wb-right" : "", one)));
  const lines = rows.map((one) => make("tr", one.verdict === "chosen" ? "wb-chosen" : "", [
    make("td", "", make("span", `wb-verdict wb-${entry(COLOURS, one.verdict, "nothing")}`, one.verdict)),
    make("td", "wb-name", one.way),
    make("td", "wb-right", number(one.restored)),
    make("td", "wb-right", one.lost ? `${number(one.lost)} (${number(one.saved)} saved first)` : number(one.lost)),
    make("td", "wb-wrap", [
      make("div", "", one.says),
      one.why ? make("div", "wb-faint", `${one.verdict === "refused" ? "refused" : "chosen"}: ${one.why}`) : null,
      ...one.also.map((text) => make("div", "wb-faint", text)),
    ]),
  ]));
  return make("div", "wb-scroll wb-tall", make("table", "wb-table", [make("thead", "", head), make("tbody", "", lines)]));
}
