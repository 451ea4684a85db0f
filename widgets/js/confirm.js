const SHOWN = 100;

function draw(body, data, send) {
  body.append(make("div", `wb-banner${data.banner.grave ? " wb-grave" : ""}`, data.banner.text));
  if (data.outcome) body.append(make("p", "", data.outcome));
  for (const one of data.next) body.append(make("pre", "", `$ ${one}`));
  if (data.at_work) working(body, data, send);
  else {
    if (data.told.length) body.append(folded(`what was told: ${number(data.told_in_all)} sentences`, data.told.join("\n")));
    if (data.kept.length) body.append(kept(data.kept));
    if (data.steps.length) asking(body, data, send);
    others(body, data, send);
  }
}

function working(body, data, send) {
  body.append(make("div", "wb-row", [
    data.total ? make("span", "wb-number", `${number(data.done)} of ${number(data.total)} steps done`) : null,
    data.stoppable
      ? button("Stop before the next step", "stop", () => send("stop"), "The step that runs is finished first", data.stopping)
      : null,
    data.stopping ? make("span", "wb-faint", "stopping …") : null,
  ]));
  body.append(make("pre", "wb-told", data.told.join("\n")));
}

function asking(body, data, send) {
  body.append(make("h3", "", `What is left to be done: ${number(data.left)} ${data.left === 1 ? "step" : "steps"}`), draw_steps(data.steps, SHOWN));
  if (data.losses.length) {
    body.append(make("h3", "", "What is lost, or cannot be undone"), ...data.losses.map((one) => make("p", "", one)));
  }
  if (!data.names.length) return;
  body.append(make("h3", "", "This changes servers: type the name of each"));
  const fields = data.names.map((name, index) => {
    const field = make("input");
    field.type = "text";
    field.autocomplete = "off";
    field.spellcheck = false;
    field.setAttribute("aria-label", "name of the server");
    field.dataset.key = `name-${index}`;
    field.addEventListener("input", () => { go.disabled = !ready(); });
    return field;
  });
  const accepted = data.assumptions.map(({ code }) => {
    const box = make("input");
    box.type = "checkbox";
    box.dataset.key = `assume-${code}`;
    box.addEventListener("change", () => { go.disabled = !ready(); });
    return box;
  });
  const ready = () => data.names.every((name, index) => fields[index].value === name) && accepted.every((box) => box.checked);
  const go = button(data.verb, "apply", () => {
    go.disabled = true; // a second click of the same hand
    const codes = data.assumptions.filter((_, index) => accepted[index].checked).map(({ code }) => code);
    send("apply", { seen: data.seen, typed: fields.map((field) => field.value), accepted: codes });
  }, "Do it on the servers", true);
  go.classList.add("wb-grave");
  body.append(...data.names.map((name, index) => make("div", "wb-row", [make("span", "wb-name", name), fields[index]])));
  if (accepted.length) {
    body.append(make("h3", "", "The steps assume what the evidence does not prove: tick each assumption that you know to be true"));
    body.append(...data.assumptions.map(({ says }, index) => make("label", "wb-row", [accepted[index], make("span", "", says)])));
  }
  body.append(make("div", "wb-row", [go]));
}

function others(body, data, send) {
  const can = [];
  if (data.can.rehearse) can.push(button("Rehearse on the model", "rehearse", () => send("rehearse", { seen: data.seen }), "No server is contacted"));
  if (data.can.verify) can.push(button("Verify on the servers", "verify", () => send("verify"), "Ask the servers again; writes nothing"));
  can.push(button("Look again", "look", () => send("look"), "Read the journal again"));
  body.append(make("div", "wb-row", can));
}

function kept(rows) {
  const head = make("tr", "", ["", "server", "suffix", "what"].map((one) => make("th", "", one)));
  const lines = rows.map((row) => make("tr", "", [
    make("td", "", verdict(row.verdict, row.kept)),
    make("td", "", row.server),
    make("td", "", row.suffix),
    make("td", "wb-wrap", row.says),
  ]));
  const whole = make("table", "wb-table", [make("thead", "", head), make("tbody", "", lines)]);
  return make("div", "", [make("h3", "", "How the servers stand to what the plan promised"), make("div", "wb-scroll", whole)]);
}
