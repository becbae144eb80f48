// Gives every history of the page its curve, its buttons, its search and its view of one moment.

function begin(data) {
  const root = data.parentElement;
  const line = new Line(JSON.parse(data.textContent));
  const marked = new Marked(line);
  const detail = new Detail(line, marked);
  const instant = new Instant(line, marked, detail);
  root.after(instant.root);
  if (!line.hasHistory) {
    root.remove();
    instant.show(line.state(line.shown));
    return;
  }
  const both = element("div", {class: "moments"});
  root.before(both);
  both.append(root, instant.root);
  const tools = element("div", {class: "tools"}, element("h2", {},
    `Live${line.pool ? " and reserved" : ""} bytes over ${line.events} events`));
  root.append(tools);
  // A person goes to a moment, and there perhaps to a storage. The storage's detail stands below what was tapped.
  const go = (state, storage, below) => {
    curve.pick(state, storage);
    if (storage >= 0) detail.storage(below, storage);
  };
  const events = new Events(line, go);
  const curve = new Curve(root, line, marked, (state, storage, band) => {
    if (storage >= 0) {
      detail.storage(keys, storage);
    } else if (band >= 0) {
      detail.owner(keys, band < line.stacked ? band : -1, state);
    } else {
      marked.choose(-1);
      detail.hide();
    }
    instant.show(state);
    events.show(state);
  });
  const keys = legend(line, curve, (owner) => detail.owner(keys, owner, curve.picked));
  const search = new Search(line, marked, go);
  const button = (text, title, act) => {
    const made = element("button", {type: "button", title}, text);
    made.addEventListener("click", act);
    tools.append(made);
  };
  button("+", "zoom in", () => curve.zoom(.5, curve.picked.moment));
  button("\u2212", "zoom out", () => curve.zoom(2));
  button("all", "the whole history", () => curve.reset());
  button("peak", "what was live at the peak", () => curve.pick(line.state(line.peak)));
  if (line.refused.length) {
    const [moment] = line.refused[line.refused.length - 1];
    button("out of memory", "the request that failed", () => curve.pick(line.state(moment)));
  }
  tools.append(search.field);
  const above = line.pool ? "; the line above: reserved bytes" : "";
  const shows = line.pool ? "the segments" : "the op and who held the bytes";
  root.append(keys, search.root, element("p", {class: "hint"}, `Bands: live bytes by owner${above}; zoomed in, each tensor ` +
    `is a shape of its own. Wheel, pinch or drag zooms, a click shows ${shows} at that moment and the tensor's stack. ` +
    "Keys: arrows, + \u2212 0, p for the peak, Enter."), events.root);
  curve.picked = line.state(line.shown);
  instant.show(curve.picked);
  events.show(curve.picked);
}

for (const data of document.querySelectorAll("script.timeline")) begin(data);
