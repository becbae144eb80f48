// Gives every history of the page its curve, its buttons and its view of the segments.

function begin(data) {
  const root = data.parentElement;
  const line = new Line(JSON.parse(data.textContent));
  const instant = new Instant(root, line);
  if (!line.hasHistory) {
    root.remove();
    instant.show(line.sampleAt(line.shown));
    return;
  }
  const tools = element("div", {class: "tools"}, element("h2", {},
    `Live${line.pool ? " and reserved" : ""} bytes over ${line.events} events`));
  root.append(tools);
  const curve = new Curve(root, line, (sample) => instant.show(sample));
  const button = (text, title, act) => {
    const made = element("button", {type: "button", title}, text);
    made.addEventListener("click", act);
    tools.append(made);
  };
  button("+", "zoom in", () => curve.zoom(.5));
  button("\u2212", "zoom out", () => curve.zoom(2));
  button("all", "the whole history", () => curve.reset());
  button("peak", "what was live at the peak", () => curve.pick(line.sampleAt(line.peak)));
  if (line.refused.length) {
    const [moment] = line.refused[line.refused.length - 1];
    button("out of memory", "the request that failed", () => curve.pick(line.sampleAt(moment)));
  }
  const above = line.pool ? "; the line above: reserved bytes" : "";
  const shows = line.pool ? "the segments" : "the op and who held the bytes";
  root.append(element("p", {class: "hint"}, `Bands: live bytes by owner${above}. Wheel, pinch or drag zooms, a click ` +
    `shows ${shows} at that moment. Keys: arrows, + \u2212 0, p for the peak, Enter.`));
  curve.picked = line.sampleAt(line.shown);
  instant.show(curve.picked);
}

for (const data of document.querySelectorAll("script.timeline")) begin(data);
