// The verdict in one line, then the findings, worst first.

function draw(body, data) {
  body.append(make("div", "wb-banner", data.headline));
  for (const one of data.findings || []) {
    const about = ["server", "link", "origin"].filter((key) => one[key]).map((key) => `${key} ${one[key]}`).join(", ");
    const title = make("div", "wb-finding-head", [verdict(one.verdict, one.severity), make("strong", "", one.code), make("span", "wb-faint", about)]);
    const parts = [title, make("p", "", one.summary)];
    if (one.items.length)
      parts.push(make("div", "wb-row", one.items.map((item) => position(item.position, item.at))));
    if (one.fix.length)
      parts.push(
        make("ol", "", one.fix.map((fix) => make("li", "", [
          make("strong", "", fix.repair), make("span", "", `: ${fix.why}`),
          fix.caution ? make("div", "wb-faint", `Beware: ${fix.caution}`) : null,
        ]))),
      );
    body.append(make("div", "wb-finding", parts));
  }
  if (data.more) body.append(make("p", "wb-faint", `and ${number(data.more)} more: workbench diagnose lists them all`));
}
