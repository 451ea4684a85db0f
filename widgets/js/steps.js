// A step whole: for the plan, and for whoever confirms it.

function draw_step(step, open) {
  const both = [
    ["before", step.stands_on],
    ["expect", step.expects],
    ["risk", step.risk],
    ...(step.assumes ? [["taken for granted", step.assumes]] : []),
    ["changes", step.changes === null ? step.loses : `${number(step.changes)} to data of ${step.server}`],
    ["undo", step.undo || `cannot be undone: ${step.cannot_undo}`],
  ];
  const says = make("div", "wb-facts", both.flatMap(([name, text]) => [make("span", "", name), make("span", "", text)]));
  const parts = [says];
  if (step.commands.length) parts.push(make("pre", "", step.commands.map((one) => `$ ${one}`).join("\n")));
  if (step.sends) parts.push(folded("what is sent", step.sends));
  const undo = [...step.undo_commands.map((one) => `$ ${one}`), step.undo_sends].filter(Boolean).join("\n");
  if (step.undo && undo) parts.push(folded("how it is undone", undo));
  if (step.effects.length) parts.push(folded("what it does on the model", step.effects.join("\n")));
  const head = make("summary", "", [
    make("span", "wb-name", step.key),
    make("span", "", `  ${step.says}`),
    make("span", "wb-faint", `  changes ${step.server}, is done on ${step.on}`),
  ]);
  head.dataset.key = `step-${step.key}`;
  const fold = make("details", "wb-do", [head, ...parts]);
  fold.open = open;
  return fold;
}

function folded(name, text) {
  return make("details", "", [make("summary", "wb-faint", name), make("pre", "", text)]);
}

// What is drawn for long: the first steps open, all of them there.
function draw_steps(steps, most) {
  const shown_steps = steps.slice(0, most);
  const more = steps.length - shown_steps.length;
  return make("div", "", [
    ...shown_steps.map((one, index) => draw_step(one, index < 3)),
    more > 0 ? make("p", "wb-faint", `and ${number(more)} more steps: see the plan`) : null,
  ]);
}
