// Draws the timeline before and after, side by side: bytes present at each op, on one scale, with one view and pointer.

// One of the two timelines; the Pair has what both share.
class PlanChart extends LevelChart {
  constructor(pair, name, levels, ghost) {
    super(pair, levels.length, `bytes present at each op, ${name}`);
    Object.assign(this, {levels, ghost});
    const most = levels.reduce((a, b) => Math.max(a, b), 0);
    this.root = element("div", {class: "chart"}, element("h3", {}, name, element("b", {}, `peak ${sizeText(most)}`)),
      this.canvas);
    this.peak = levels.indexOf(most);
  }

  drawLevels() {
    this.eachStep(this.levels, (op, x0, x1) => {
      const y = this.yOf(this.levels[op]);
      this.g.fillStyle = phaseColor(this.group.phaseOf(op));
      const left = Math.round(x0 * this.ratio) / this.ratio;  // on whole pixels: no seams between neighbours
      const right = Math.max(Math.round(x1 * this.ratio) / this.ratio, left + 1 / this.ratio);
      this.g.fillRect(left, y, right - left, this.bottom - y);
    });
    this.drawGhost();
  }

  // Draws the other timeline behind this one: the plain timeline behind the planned one.
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
}

class Pair {
  constructor(root, json) {
    Object.assign(this, json);
    this.plain = summed(json.plain);
    this.planned = json.planned ? summed(json.planned) : null;
    this.limit = {bytes: this.budget, name: "for tensors"};
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

  // Says what stands at an op, in words; null: nothing is pointed at.
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
