// To the next page of a list of which nobody knows how long it is, and back.

function turns(data, send) {
  return make("div", "wb-pager", [
    button("◀", "page-back", () => send("page", { by: -1 }), "the page before", data.number <= 1),
    make("span", "", data.number > 1 || data.more ? `page ${number(data.number)}` : ""),
    button("▶", "page-on", () => send("page", { by: 1 }), "the next page", !data.more),
  ]);
}
