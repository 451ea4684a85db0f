function draw(body, data) {
  if (data.text) body.append(make("div", "wb-notice", data.text));
}
