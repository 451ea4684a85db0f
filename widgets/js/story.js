// The whole story of one change: who has it, what proves that, who could send it.

function about_change(story) {
  const made = make("p", "", [
    position(story.position, story.made_at), make("span", "", ` of origin ${story.origin}`),
    make("span", "", story.made_on.length ? `, made on ${story.made_on.join(", ")}` : ""),
    make("span", "", story.made_at ? ` at ${story.made_at} UTC` : ""),
  ]);
  const what = story.operation || story.target ? make("p", "", `${story.operation || ""} ${story.target || ""}`.trim()) : null;
  const parts = [make("h3", "", "The story of one change"), made, what];
  for (const one of story.servers) {
    parts.push(make("h3", "", [make("span", "", `${one.server}: `), verdict(one.verdict, one.verdict), make("span", "wb-faint wb-plain", ` ${one.says}`)]));
    if (one.evidence.length)
      parts.push(table(
        [{ key: "table", label: "evidence" }, { key: "snapshot", label: "snapshot" }, { key: "file", label: "file" },
          { key: "offset", label: "byte", kind: "number" }, { key: "says", label: "says" }], one.evidence));
    if (one.suppliers.length)
      parts.push(table(
        [{ key: "supplier", label: "who could send it" }, { key: "link", label: "link" }, { key: "decision", label: "its session" },
          { key: "outcome", label: "this change" }, { key: "why", label: "why" }], one.suppliers));
  }
  return make("div", "wb-detail", parts);
}
