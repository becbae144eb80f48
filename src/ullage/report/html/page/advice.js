// Draws what each run held, one over the other: lines over the parts of the runs' steps, all on one scale.

const CURVE_INKS = ["faint", "parameters", "gradients", "activations", "optimizer", "library", "temporaries"];  // as .k-N

class AdviceChart extends LevelChart {
  constructor(group, count) {
    super(group, count, "bytes held in each part of a step, for each run");
    this.root = element("div", {class: "chart"}, this.canvas);
    this.peak = 0;
    for (const curve of group.curves) {
      const most = curve.tensors.reduce((a, b) => Math.max(a, b || 0), 0);
      if (curve === group.curves[0]) this.peak = curve.tensors.indexOf(most);
    }
  }

  drawLevels() {
    for (let step = 1; step < this.group.steps; step += 1) {
      const x = Math.round(this.xOf(step * this.group.parts)) + .5;
      this.line(x, 0, x, this.bottom, this.ink("line"), []);
    }
    const {curves, chosen} = this.group;
    for (const curve of curves) {
      if (curve.hidden || curve === chosen) continue;
      this.drawCurve(curve.tensors, curve.ink, chosen === null ? 1.5 : 1, []);
    }
    if (chosen === null || chosen.hidden) return;
    this.drawCurve(chosen.held, chosen.ink, 1, [2, 3]);
    this.drawCurve(chosen.tensors, chosen.ink, 3, []);
  }

  drawCurve(levels, name, width, dash) {
    const g = this.g;
    g.beginPath();
    let open = false;
    this.eachStep(levels, (part, x0, x1) => {
      const y = this.yOf(levels[part]);
      if (Number.isNaN(y)) {
        open = false;
        return;
      }
      if (open) g.lineTo(x0, y); else g.moveTo(x0, y);
      g.lineTo(x1, y);
      open = true;
    });
    Object.assign(g, {strokeStyle: this.ink(name), lineWidth: width, lineJoin: "round"});
    g.setLineDash(dash);
    g.stroke();
    g.setLineDash([]);
  }
}

class Advice {
  constructor(root, json) {
    this.parts = json.parts;
    this.curves = json.curves.map((one, index) => one && this.read(one, index)).filter((one) => one);
    this.steps = Math.max(...this.curves.map((one) => one.steps));
    const count = this.steps * this.parts;
    for (const one of this.curves) {
      for (const kind of ["tensors", "held"]) one[kind] = this.whole(one[kind], count);
    }
    this.limit = {bytes: json.memory, name: "memory"};
    this.view = [0, count];
    this.hover = this.picked = this.chosen = null;
    const highest = this.curves.flatMap((one) => [...one.held]).reduce((a, b) => Math.max(a, b || 0), json.memory);
    this.most = 1.06 * Math.max(highest, 1);
    this.chart = new AdviceChart(this, count);
    this.here = element("div", {class: "here", "aria-live": "polite"});
    root.append(this.chart.root, element("ul", {class: "keys"}, ...this.curves.map((one) => this.key(one))),
      element("p", {class: "hint"}, `Left to right: ${this.steps === 1 ? "the run" : `steps 1 to ${this.steps}`}, each as ` +
        "wide as the next; within a step, its allocations and frees in order. A line is what its tensors hold, with the " +
        "rest of the process or the CUDA context; the dotted line adds what the allocator caches. Click a name to hide " +
        "its line. Drag or wheel zooms, 0 shows all, arrows go along, p goes to the plain program's peak."), this.here);
    this.show(null);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  read(one, index) {
    const lists = (which) => one.steps.map((step) => (step[which].length > 0 ? summed(step[which]) : null));
    return {name: one.name, fits: one.fits, steps: one.steps.length, tensors: lists(0), held: lists(1), hidden: false,
      index, ink: CURVE_INKS[index]};
  }

  // Returns one array for all steps; NaN: not known.
  whole(steps, count) {
    const all = new Float64Array(count).fill(NaN);
    steps.forEach((levels, step) => { if (levels) all.set(levels, step * this.parts); });
    return all;
  }

  key(curve) {
    const button = element("button", {"aria-pressed": "true"}, element("i", {class: `dot k-${curve.index}`}), curve.name);
    const choose = (one) => { this.chosen = one; this.draw(); };
    button.addEventListener("click", () => {
      curve.hidden = !curve.hidden;
      button.setAttribute("aria-pressed", String(!curve.hidden));
      this.show(this.hover);
    });
    for (const name of ["pointerenter", "focus"]) button.addEventListener(name, () => choose(curve));
    for (const name of ["pointerleave", "blur"]) button.addEventListener(name, () => choose(null));
    return element("li", {}, button);
  }

  draw() { this.chart.draw(); }

  setView(from, to) {
    const all = this.steps * this.parts;
    const span = Math.min(Math.max(to - from, 8), all);
    const begin = Math.min(Math.max(from, 0), all - span);
    this.view = [begin, begin + span];
    this.draw();
  }

  // Shows what each run held in a part of a step; null: nothing is pointed at.
  show(part) {
    this.hover = part;
    this.draw();
    if (part === null) {
      this.here.replaceChildren(element("p", {class: "empty"}, "Point at the picture to compare the runs there."));
      return;
    }
    const text = (bytes) => (Number.isNaN(bytes) ? "-" : sizeText(bytes));
    const shown = this.curves.filter((one) => !one.hidden);
    const rows = shown.map((one) => element("tr", {}, element("td", {}, element("i", {class: `dot k-${one.index}`}), one.name),
      element("td", {class: "number"}, text(one.tensors[part])), element("td", {class: "number"}, text(one.held[part]))));
    const where = `step ${Math.floor(part / this.parts) + 1}, ${Math.round(part % this.parts / this.parts * 100)} % of it`;
    const head = element("thead", {}, element("tr", {}, element("th", {}, where), element("th", {class: "number"}, "tensors"),
      element("th", {class: "number"}, "with the cache")));
    this.here.replaceChildren(element("table", {}, head, element("tbody", {}, ...rows)));
    this.here.dataset.part = part;
    this.chart.canvas.setAttribute("aria-valuenow", part);
    this.chart.canvas.setAttribute("aria-valuetext", `${where}: ` + shown.map((one) =>
      `${one.name} ${text(one.tensors[part])}`).join(", "));
  }
}

for (const data of document.querySelectorAll("script.advice-timeline")) {
  new Advice(data.parentElement, JSON.parse(data.textContent));
}
