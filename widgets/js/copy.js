function draw(body, data) {
  const done = make("span", "wb-faint");
  const text = make("pre", "", data.file);
  const fold = make("details", "", [make("summary", "wb-faint", "show it"), text]);
  const copied = async () => {
    try {
      await navigator.clipboard.writeText(data.file);
      done.textContent = "copied";
    } catch {
      fold.open = true;
      window.getSelection().selectAllChildren(text);
      done.textContent = "marked below: copy it with the keyboard";
    }
  };
  const about = "The parameters file of a run without a person that shows exactly this";
  body.append(make("div", "wb-row", [button("Copy as parameters file", "copy", copied, about), done]), fold);
}
