// What if the tree were changed: the changes as text, helpers to write them, and the tree before and after.

function draw(body, data, send) {
  const text = make("input", "");
  text.type = "text";
  text.value = shown(data.written);
  text.dataset.key = "changes";
  text.setAttribute("aria-label", "changes, with a semicolon between them");
  text.placeholder = shown(data.forms);
  text.size = 70;
  const show = () => send("write", { text: text.value });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter") show();
  });
  const more = (one) => send("write", { text: data.written ? `${data.written}; ${one}` : one });
  body.append(make("div", "wb-row", [text, button("show", "show", show, "the tree after these changes"),
    button("begin anew", "anew", () => send("write", { text: "" }), "no change at all", !data.written)]));
  body.append(pickers(data, more));
  body.append(make("p", "wb-faint", `Nothing is done anywhere. The registry answers by the rules of ${shown(data.rules)}.`));
  body.append(make("div", "wb-beside", [
    make("div", "", [make("h3", "", "Before and after"), table([{ key: "what", label: "" }, { key: "before", label: "before", kind: "number" },
      { key: "after", label: "after", kind: "number" }], data.shapes)]),
    make("div", "", [make("h3", "", "What would happen"), ...happens(data)]),
  ]));
  body.append(make("div", "wb-beside", data.trees.map((one, index) => make("div", "", [
    make("h3", "", index ? "The tree after" : "The tree before"), outline(one)]))));
  if (data.left) body.append(make("p", "wb-faint", `${number(data.left)} further nodes are not drawn: they keep their places.`));
  if (data.nodes.length) {
    body.append(make("h3", "", "Nodes that change their place or their load"));
    body.append(table([{ key: "node", label: "node" }, { key: "source_was", label: "pulled from" }, { key: "source_now", label: "pulls from" },
      { key: "tier_was", label: "tier", kind: "number" }, { key: "tier_now", label: "then", kind: "number" },
      { key: "serves_was", label: "served", kind: "number" }, { key: "serves_now", label: "serves", kind: "number" }], data.nodes));
    if (data.changed > data.nodes.length) body.append(make("p", "wb-faint", `${number(data.changed - data.nodes.length)} further ones are not shown.`));
  }
  body.append(...in_order(data.balance, more));
}

// The nodes as nested lists: what a node feeds stands below it. Those that change their place or load are in bold.
function outline(nodes) {
  const top = make("ul", "wb-outline");
  const lists = [top];
  for (const one of nodes) {
    lists.length = one.depth + 1;
    const told = one.serves ? `${one.name} (serves ${number(one.serves)})` : one.name;
    const words = one.adrift ? verdict("stranded", `${told} hangs on no source`) : make(one.changed ? "strong" : "span", "", told);
    const below = make("ul", "");
    lists[one.depth].append(make("li", "", [words, below]));
    lists.push(below);
  }
  return top;
}

function happens(data) {
  const parts = data.stranded.map((one) => make("p", "", verdict("missing", `${one.node} could not be brought up to date any more: ${one.why}`)));
  parts.push(...data.sentences.map((one) => make("p", "", one)));
  return parts.length ? parts : [make("p", "wb-faint", data.written ? "Nobody has to ask for another source." : "Nothing is changed yet.")];
}

// The kind of a change, a node, and where it takes one another node.
function pickers(data, more) {
  const kind = picker("kind", "what is changed", ["lose", "move", "reset"]);
  const node = picker("node", "which node", data.names);
  const under = picker("under", "under which node it is moved", data.names);
  const beside = make("span", "wb-faint", "under");
  const fits = () => { under.hidden = beside.hidden = kind.value !== "1"; };
  kind.addEventListener("change", fits);
  fits();
  const add = () => {
    const words = ["lose", "move", "reset"][kind.value];
    more(`${words} ${data.names[node.value]}${words === "move" ? ` under ${data.names[under.value]}` : ""}`);
  };
  return make("div", "wb-row", [kind, node, beside, under, button("add this change", "add", add, "after those that are written", !data.names.length),
    data.unnamed ? make("span", "wb-faint", `${number(data.unnamed)} further nodes are not listed: write their names above`) : null]);
}

function picker(key, words, options) {
  const made = make("select", "wb-select");
  made.dataset.key = key;
  made.setAttribute("aria-label", words);
  options.forEach((one, index) => {
    const option = make("option", "", one);
    option.value = index;
    made.append(option);
  });
  return made;
}

function in_order(balance, more) {
  const parts = [make("h3", "", "What would bring it in order")];
  if (balance.moves.length) {
    parts.push(make("p", "", `${number(balance.count)} ${balance.count === 1 ? "move" : "moves"}${balance.fewest ? ", and no fewer will do" : ""}; each needs its registration asked for anew.`));
    parts.push(table([{ key: "node", label: "node" }, { key: "was", label: "pulls from" }, { key: "to", label: "would pull from" }, { key: "why", label: "why" }], balance.moves));
    parts.push(make("div", "wb-row", button("add these moves", "order", () => more(balance.written), "to the changes above")));
  } else if (!balance.unplaced.length) parts.push(make("p", "", verdict("present", "It is in order: nothing has to be moved.")));
  parts.push(...balance.unplaced.map((one) => make("p", "", verdict("missing", `no place for ${one.node}: ${one.why}`))));
  return parts;
}
