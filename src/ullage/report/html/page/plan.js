// The timeline before and after, side by side: bytes present at each op, on one scale, with one view and one pointer.

// One of the two; `chart.view`, `hover` and what else Pointers asks for are those of the pair.
class PlanChart {
  constructor(pair, name, levels, ghost) {
    Object.assign(this, {pair, levels, ghost});
    this.canvas = element("canvas", {tabindex: 0, role: "slider", "aria-label": `bytes present at each op, ${name}`,
      "aria-valuemin": 0, "aria-valuemax": levels.length - 1});
    const most = levels.reduce((a, b) => Math.max(a, b), 0);
    this.root = element("div", {class: "chart"}, element("h3", {}, name, element("b", {}, `peak ${sizeText(most)}`)),
      this.canvas);
    this.selection = null;
    this.peak = levels.indexOf(most);
    new Pointers(this);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  get view() { return this.pair.view; }
  get hover() { return this.pair.hover; }
  setView(from, to) { this.pair.setView(from, to); }
  reset() { this.pair.setView(0, this.levels.length); }
  leave() { this.pair.show(this.pair.picked); }
  pick(op) { this.pair.picked = op; this.pair.show(op); }
  point(x) { this.pair.show(Math.min(Math.max(Math.floor(this.momentOf(x)), 0), this.levels.length - 1)); }

  xOf(op) { return (op - this.view[0]) / (this.view[1] - this.view[0]) * this.width; }
  momentOf(x) { return this.view[0] + x / this.width * (this.view[1] - this.view[0]); }
  yOf(bytes) { return this.bottom - bytes / this.pair.most * (this.bottom - this.top); }

  draw() {
    const box = this.canvas.getBoundingClientRect();
    if (box.width === 0) return;
    const ratio = this.ratio = devicePixelRatio || 1;
    [this.width, this.height] = [box.width, box.height];
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    [this.top, this.bottom] = [18, this.height - 4];
    const style = getComputedStyle(document.documentElement);
    this.ink = (name) => style.getPropertyValue(`--${name}`).trim();
    const g = this.g = this.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    g.font = "12px system-ui, sans-serif";
    this.drawLevels();
    this.drawGhost();
    this.drawScale();
    this.drawMarks();
    [this.canvas.dataset.from, this.canvas.dataset.to] = this.view;
  }

  // Calls step(op, x0, x1) for what is in view, at most once a pixel: of several ops the one with the most bytes.
  eachStep(levels, step) {
    const last = Math.min(Math.ceil(this.view[1]), levels.length);
    let best = -1;
    let begin = 0;
    for (let op = Math.max(0, Math.floor(this.view[0])); op < last; op += 1) {
      if (best < 0) [best, begin] = [op, op];
      if (levels[op] > levels[best]) best = op;
      if (this.xOf(op + 1) - this.xOf(begin) < 1 && op + 1 < last) continue;
      step(best, Math.max(0, this.xOf(begin)), this.xOf(op + 1));
      best = -1;
    }
  }

  drawLevels() {
    this.eachStep(this.levels, (op, x0, x1) => {
      const y = this.yOf(this.levels[op]);
      this.g.fillStyle = phaseColor(this.pair.phaseOf(op));
      const left = Math.round(x0 * this.ratio) / this.ratio;  // on whole pixels: no seams between neighbours
      const right = Math.max(Math.round(x1 * this.ratio) / this.ratio, left + 1 / this.ratio);
      this.g.fillRect(left, y, right - left, this.bottom - y);
    });
  }

  // Where the other one stands: the plain timeline behind the planned one.
  drawGhost() {
    if (!this.ghost) return;
    const g = this.g;
    g.beginPath();
    this.eachStep(this.ghost, (op, x0, x1) => {
      g.lineTo(x0, this.yOf(this.ghost[op]));
      g.lineTo(x1, this.yOf(this.ghost[op]));
    });
    g.strokeStyle = this.ink("faint");
    g.lineWidth = 1;
    g.stroke();
  }

  drawScale() {
    let step = 2 ** Math.floor(Math.log2(this.pair.most / 4));
    while (this.pair.most / step > 6) step *= 2;
    for (let bytes = 0; bytes < this.pair.most; bytes += step) {
      const y = Math.round(this.yOf(bytes)) + .5;
      this.line(0, y, this.width, y, this.ink("line"), []);
      if (bytes > 0) this.label(sizeText(bytes), 4, y - 4);
    }
  }

  line(x0, y0, x1, y1, color, dash, width = 1) {
    const g = this.g;
    g.strokeStyle = color;
    g.lineWidth = width;
    g.setLineDash(dash);
    g.beginPath();
    g.moveTo(x0, y0);
    g.lineTo(x1, y1);
    g.stroke();
    g.setLineDash([]);
  }

  label(text, x, y, color = this.ink("text"), align = "left") {
    const g = this.g;
    Object.assign(g, {textAlign: align, lineWidth: 3, lineJoin: "round", strokeStyle: this.ink("card"), fillStyle: color});
    g.strokeText(text, x, y);
    g.fillText(text, x, y);
  }

  drawMarks() {
    const {budget, hover} = this.pair;
    if (budget > 0) {
      const y = this.yOf(budget);
      this.line(0, y, this.width, y, this.ink("bad"), [6, 4], 1.5);
      this.label(`for tensors: ${sizeText(budget)}`, this.width - 4, y - 5, this.ink("bad"), "right");
    }
    if (hover !== null) {
      const x = this.xOf(hover + .5);
      this.line(x, 0, x, this.bottom, this.ink("text"), [3, 3]);
    }
    if (this.selection) {
      const [a, b] = this.selection;
      this.g.fillStyle = this.ink("accent");
      this.g.globalAlpha = .2;
      this.g.fillRect(Math.min(a, b), 0, Math.abs(b - a), this.bottom);
      this.g.globalAlpha = 1;
    }
  }

  wheel(event) {
    const out = event.deltaY > 0;
    const [from, to] = this.view;
    if (out && to - from >= this.levels.length) return;  // the page may scroll on
    const around = this.momentOf(event.offsetX);
    const factor = out ? 1.25 : .8;
    this.setView(around - (around - from) * factor, around + (to - around) * factor);
    event.preventDefault();
    this.point(event.offsetX);
  }

  key(event) {
    const last = this.levels.length - 1;
    const here = this.hover ?? this.peak;
    const by = event.shiftKey ? Math.max(1, Math.round((this.view[1] - this.view[0]) / 10)) : 1;
    const go = {ArrowLeft: here - by, ArrowRight: here + by, Home: 0, End: last, p: this.peak}[event.key];
    if (go !== undefined) {
      this.pick(Math.min(Math.max(go, 0), last));
    } else if (event.key === "0" || event.key === "Escape") {
      this.reset();
    } else {
      return;
    }
    event.preventDefault();
  }
}

class Pair {
  constructor(root, json) {
    Object.assign(this, json);
    this.plain = summed(json.plain);
    this.planned = json.planned ? summed(json.planned) : null;
    this.view = [0, this.plain.length];
    this.hover = this.picked = null;
    this.most = 1.06 * [...this.plain, this.budget].reduce((a, b) => Math.max(a, b), 1);
    this.charts = [new PlanChart(this, this.planned ? "before" : "as it is", this.plain, null)];
    if (this.planned) this.charts.push(new PlanChart(this, "after", this.planned, this.plain));
    this.here = element("div", {class: "here", "aria-live": "polite"});
    root.append(element("div", {class: this.planned ? "pair" : "pair single"}, ...this.charts.map((c) => c.root)),
      element("ul", {class: "phases"}, ...this.phases.map((name) => this.legend(name))),
      element("p", {class: "hint"}, "Left to right: the ops of one step, each as wide as the next. Drag or wheel zooms, " +
        "0 shows all, arrows go from op to op, p to the peak."), this.here);
    this.show(null);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  legend(name) { return element("li", {}, element("i", {class: `dot p-${name}`}), name); }
  phaseOf(op) { return this.phases[this.phase[op]]; }
  draw() { for (const chart of this.charts) chart.draw(); }

  setView(from, to) {
    const all = this.plain.length;
    const span = Math.min(Math.max(to - from, Math.min(8, all)), all);
    const begin = Math.min(Math.max(from, 0), all - span);
    this.view = [begin, begin + span];
    this.draw();
  }

  // What stands at an op, in words; null: nothing is pointed at.
  show(op) {
    this.hover = op;
    this.draw();
    if (op === null) {
      this.here.replaceChildren(element("p", {class: "empty"}, "Point at an op to see what is done there."));
      return;
    }
    const row = (name, bytes) => element("tr", {}, element("td", {}, name), element("td", {class: "number"}, sizeText(bytes)));
    const rows = [row(this.planned ? "before" : "present", this.plain[op])];
    if (this.planned) rows.push(row("after", this.planned[op]));
    const done = this.acts.filter(([at]) => at === op);
    const list = done.slice(0, 12).map(([, what, site]) => element("li", {}, element("b", {}, what), " ",
      element("span", {class: "code"}, site)));
    if (done.length > 12) list.push(element("li", {}, `and ${done.length - 12} more`));
    this.here.replaceChildren(element("b", {class: "op"}, this.names[this.op[op]]),
      ` op ${op + 1} of ${this.plain.length}, ${this.phaseOf(op)}, ${timeText(this.took[op])}`,
      element("table", {}, element("tbody", {}, ...rows)), element("ul", {}, ...list));
    Object.assign(this.here.dataset, {op, plain: this.plain[op], planned: this.planned ? this.planned[op] : ""});
    for (const chart of this.charts) {
      chart.canvas.setAttribute("aria-valuenow", op);
      chart.canvas.setAttribute("aria-valuetext", `${this.names[this.op[op]]}: ${sizeText(chart.levels[op])}`);
    }
  }
}

for (const data of document.querySelectorAll("script.plan-timeline")) {
  new Pair(data.parentElement, JSON.parse(data.textContent));
}
