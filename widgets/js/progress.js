const UNHEARD = "The kernel does not hear this while it works: interrupt it with the notebook's ■. That changes nothing either.";
const STATES = { running: "", cancelling: "cancelling …", done: "done", cancelled: "cancelled", failed: "failed" };

function draw(body, data, send) {
  const at_work = data.state === "running" || data.state === "cancelling";
  const share = data.total ? Math.min(1, data.done / data.total) : 0;
  const bar = draw_svg("svg", { class: `wb-progress wb-progress-${known_state(data.state)}`, viewBox: "0 0 300 10", width: 300, height: 10 }, [
    draw_svg("rect", { class: "wb-progress-all", x: 0, y: 0, width: 300, height: 10, rx: 2 }),
    draw_svg("rect", { class: "wb-progress-part", x: 0, y: 0, width: data.state === "done" ? 300 : 300 * share, height: 10, rx: 2 }),
  ]);
  const clock = make("span", "wb-number");
  const drawn = performance.now();
  const tick = () => { clock.textContent = seconds(data.seconds + (at_work ? (performance.now() - drawn) / 1000 : 0)); };
  tick();
  if (at_work) {
    const every = setInterval(() => (clock.isConnected ? tick() : clearInterval(every)), 500);
  }
  const counted = [];
  if (at_work && !data.total) counted.push(make("span", "wb-faint", "getting ready"));
  const amount = data.unit === "MB" ? megabytes : number;
  if (data.total) counted.push(make("span", "wb-number", `${amount(data.done)} of ${amount(data.total)} ${data.unit}`));
  if (data.rows) {
    if (data.unit !== "rows") counted.push(make("span", "wb-number", `${number(data.rows)} rows`));
    if (data.rate) counted.push(make("span", "wb-number wb-faint", `${number(data.rate)} rows/s`));
  }
  const cancel = at_work
    ? button("Cancel", "cancel", () => {
        cancel.disabled = true;
        send("cancel");
        setTimeout(() => { body.unheard = true; if (hint.isConnected) hint.textContent = UNHEARD; }, 3000);
      }, "End this and leave everything as it was", data.state === "cancelling")
    : null;
  const hint = make("div", "wb-faint", data.state === "running" && body.unheard ? UNHEARD : "");
  const words = at_work ? STATES[known_state(data.state)] : `${STATES[known_state(data.state)]}${data.says ? ": " : ""}${data.says || ""}`;
  body.append(make("div", "wb-row", [make("span", "", data.what), bar, ...(at_work ? counted : []), clock,
    make("span", at_work ? "wb-faint" : "", words), cancel]), hint);
}

function known_state(state) {
  return Object.hasOwn(STATES, state) ? state : "failed";
}

function megabytes(bytes) {
  return (bytes / 1e6).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}

function seconds(value) {
  return `${value.toFixed(value < 10 ? 1 : 0)} s`;
}
