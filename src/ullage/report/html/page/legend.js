// Says which color is which band and which phase. A band's entry shows its owner's stack.

function legend(line, curve, onOwner) {
  const list = element("ul", {class: "keys"});
  const fill = () => {
    const colors = line.colors();
    const shown = colors.map((color, c) => ({color, c})).filter(({c}) => line.levels[c].some((bytes) => bytes > 0));
    const bands = shown.map(({color, c}) => {
      const made = element("button", {type: "button", title: line.bandName(c)}, dot(color), line.shortBandName(c));
      made.addEventListener("click", () => onOwner(c < line.stacked ? c : -1));
      for (const [kind, band] of [["pointerenter", c], ["pointerleave", -1], ["focus", c], ["blur", -1]]) {
        made.addEventListener(kind, () => { curve.band = band; curve.draw(); });
      }
      return element("li", {}, made);
    });
    const phases = line.stripNames().slice(0, 8).map((name) => element("li", {class: "phase"}, dot(line.stripColor(name)), name));
    const line_above = line.pool ? [element("li", {}, element("i", {class: "dot above"}), "reserved by PyTorch")] : [];
    list.replaceChildren(...bands.reverse(), ...line_above, ...phases);
  };
  fill();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fill);
  return list;
}
