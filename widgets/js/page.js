// Holds the drawing of a view (`draw(body, data, send)`) to its model.

export default {
  render({ model, el }) {
    el.classList.add("wb");
    const notice = make("div", "wb-notice");
    const body = make("div", "wb-body");
    el.append(notice, body);
    const send = (what, more) => {
      body.classList.add("wb-busy");
      model.send({ what, ...more });
    };
    const told = () => {
      body.classList.remove("wb-busy");
      notice.textContent = shown(model.get("notice"));
      notice.hidden = !model.get("notice");
    };
    const redraw = () => {
      const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
      const scrolled = Array.from(body.querySelectorAll(".wb-scroll"), (one) => [one.scrollTop, one.scrollLeft]);
      body.replaceChildren();
      const data = model.get("data") || {};
      if (Object.keys(data).length) draw(body, data, send);
      body.querySelectorAll(".wb-scroll").forEach((one, index) => {
        if (scrolled[index]) [one.scrollTop, one.scrollLeft] = scrolled[index];
      });
      if (focused) {
        const again = Array.from(body.querySelectorAll("[data-key]")).find((one) => one.dataset.key === focused);
        if (again) again.focus({ preventScroll: true });
      }
      told();
    };
    // Kept, so that a view that is taken off the page no longer listens.
    model.on("change:data", redraw);
    model.on("change:notice", told);
    const done = () => told();
    model.on("msg:custom", done);
    redraw();
    return () => {
      model.off("change:data", redraw);
      model.off("change:notice", told);
      model.off("msg:custom", done);
    };
  },
};
