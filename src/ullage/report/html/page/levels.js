// A canvas that shows bytes over moments: the scale, the limit, the pointer and the view. A class that extends it draws
// the levels.

// `group` has what its charts share: view, hover, most, limit {bytes, name}, setView(), show(), picked.
class LevelChart {
  constructor(group, count, label) {
    Object.assign(this, {group, count});
    this.canvas = element("canvas", {tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": 0,
      "aria-valuemax": count - 1});
    this.selection = null;
    new Pointers(this);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  get view() { return this.group.view; }
  get hover() { return this.group.hover; }
  setView(from, to) { this.group.setView(from, to); }
  reset() { this.group.setView(0, this.count); }
  leave() { this.group.show(this.group.picked); }
  pick(moment) { this.group.picked = moment; this.group.show(moment); }
  point(x) { this.group.show(Math.min(Math.max(Math.floor(this.momentOf(x)), 0), this.count - 1)); }

  xOf(moment) { return (moment - this.view[0]) / (this.view[1] - this.view[0]) * this.width; }
  momentOf(x) { return this.view[0] + x / this.width * (this.view[1] - this.view[0]); }
  yOf(bytes) { return this.bottom - bytes / this.group.most * (this.bottom - this.top); }

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
    this.drawScale();
    this.drawMarks();
    [this.canvas.dataset.from, this.canvas.dataset.to] = this.view;
  }

  // Calls step(op, x0, x1) for what is in view, at most once a pixel: of several ops, for the one with the most bytes.
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

  drawScale() {
    let step = 2 ** Math.floor(Math.log2(this.group.most / 4));
    while (this.group.most / step > 6) step *= 2;
    for (let bytes = 0; bytes < this.group.most; bytes += step) {
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
    const {limit, hover} = this.group;
    if (limit.bytes > 0) {
      const y = this.yOf(limit.bytes);
      this.line(0, y, this.width, y, this.ink("bad"), [6, 4], 1.5);
      this.label(`${limit.name}: ${sizeText(limit.bytes)}`, this.width - 4, y - 5, this.ink("bad"), "right");
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
    if (out && to - from >= this.count) return;  // the page may scroll on
    const around = this.momentOf(event.offsetX);
    const factor = out ? 1.25 : .8;
    this.setView(around - (around - from) * factor, around + (to - around) * factor);
    event.preventDefault();
    this.point(event.offsetX);
  }

  key(event) {
    const last = this.count - 1;
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
