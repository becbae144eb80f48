// The curve of live bytes as stacked owners, with the reserved bytes above: zoom, hover and choice of a moment.

class Curve {
  // onPick(sample) is called when a person chooses a moment.
  constructor(root, line, onPick) {
    this.line = line;
    this.onPick = onPick;
    this.full = [0, line.events + 1];
    this.view = [...this.full];
    this.hover = null;   // a sample
    this.band = -1;      // the column below the pointer
    this.picked = null;  // a sample
    this.canvas = element("canvas", {tabindex: 0, role: "slider", "aria-label": "live bytes over the events",
      "aria-valuemin": 0, "aria-valuemax": line.events});
    this.read = element("div", {class: "read", hidden: "", "aria-live": "polite"});
    root.append(element("div", {class: "chart"}, this.canvas, this.read));
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  // ---- places
  xOf(moment) { return (moment - this.view[0]) / (this.view[1] - this.view[0]) * this.width; }
  momentOf(x) { return this.view[0] + x / this.width * (this.view[1] - this.view[0]); }
  yOf(bytes) { return this.bottom - bytes / this.most * (this.bottom - this.top); }

  setView(from, to) {
    const span = Math.min(Math.max(to - from, Math.min(8, this.full[1])), this.full[1]);
    const begin = Math.min(Math.max(from, 0), this.full[1] - span);
    this.view = [begin, begin + span];
    this.draw();
  }

  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    this.setView(around - (around - this.view[0]) * factor, around + (this.view[1] - around) * factor);
  }

  pan(share) {
    const by = share * (this.view[1] - this.view[0]);
    this.setView(this.view[0] + by, this.view[1] + by);
  }

  reset() { this.setView(...this.full); }

  show(sample) {  // brings a sample into view
    const moment = this.line.moments[sample];
    if (moment < this.view[0] || moment >= this.view[1]) {
      const half = (this.view[1] - this.view[0]) / 2;
      this.setView(moment - half, moment + half);
    }
  }

  pick(sample) {
    this.picked = sample;
    this.hover = sample;
    this.show(sample);
    this.draw();
    this.tell();
    this.onPick(sample);
  }

  // ---- drawing
  draw() {
    const box = this.canvas.getBoundingClientRect();
    if (box.width === 0) return;
    const ratio = devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.strip = this.line.strips.length || this.line.steps.length ? 24 : 0;
    this.top = 18;
    this.bottom = this.height - this.strip - 4;
    const style = getComputedStyle(document.documentElement);
    this.ink = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colors = ownerColors(this.line.owners.slice(0, this.line.stacked), isDark());
    this.colors.push(this.ink("line"));
    const g = this.g = this.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    g.font = "12px system-ui, sans-serif";
    this.samples = this.samplesInView();
    this.most = 1.06 * this.samples.reduce((most, i) => Math.max(most, this.line.live[i], this.line.reserved[i]), 1);
    this.drawBands();
    this.drawScale();
    this.drawReserved();
    this.drawStrip();
    this.drawMarks();
    this.canvas.dataset.from = this.view[0];
    this.canvas.dataset.to = this.view[1];
  }

  // One sample a pixel at most: of several the one with the most live bytes.
  samplesInView() {
    const first = this.line.sampleAt(this.view[0]);
    const last = this.line.sampleAt(this.view[1]);
    const chosen = [];
    let pixel = NaN;
    for (let i = first; i <= last; i += 1) {
      const at = Math.floor(Math.max(0, this.xOf(this.line.moments[i])));
      if (at !== pixel) {
        chosen.push(i);
        pixel = at;
      } else if (this.line.live[i] > this.line.live[chosen[chosen.length - 1]]) {
        chosen[chosen.length - 1] = i;
      }
    }
    return chosen;
  }

  // Calls step(sample, x0, x1) for every drawn sample: a level holds until the next one.
  eachStep(step) {
    for (let n = 0; n < this.samples.length; n += 1) {
      const next = n + 1 < this.samples.length ? this.xOf(this.line.moments[this.samples[n + 1]]) : this.width;
      const begin = Math.max(0, this.xOf(this.line.moments[this.samples[n]]));
      step(this.samples[n], begin, Math.max(next, begin));
    }
  }

  drawBands() {
    const g = this.g;
    const base = new Float64Array(this.line.live.length);
    this.line.levels.forEach((column, c) => {
      g.beginPath();
      this.eachStep((i, x0, x1) => {
        if (column[i] === 0) return;
        const y0 = this.yOf(base[i]);
        g.rect(x0, this.yOf(base[i] + column[i]), Math.max(x1 - x0, .6) + .3, y0 - this.yOf(base[i] + column[i]));
      });
      g.globalAlpha = this.band < 0 || this.band === c ? 1 : .45;
      g.fillStyle = this.colors[c];
      g.fill();
      for (const i of this.samples) base[i] += column[i];
    });
    g.globalAlpha = 1;
  }

  drawScale() {
    const g = this.g;
    let step = 2 ** Math.floor(Math.log2(this.most / 4));
    while (this.most / step > 6) step *= 2;
    g.strokeStyle = this.ink("line");
    g.lineWidth = 1;
    for (let bytes = 0; bytes < this.most; bytes += step) {
      const y = Math.round(this.yOf(bytes)) + .5;
      g.globalAlpha = .6;
      g.beginPath();
      g.moveTo(0, y);
      g.lineTo(this.width, y);
      g.stroke();
      g.globalAlpha = 1;
      if (bytes > 0) this.label(sizeText(bytes), 4, y - 4);
    }
  }

  label(text, x, y, color = this.ink("text"), align = "left") {
    const g = this.g;
    g.textAlign = align;
    g.lineWidth = 3;
    g.lineJoin = "round";
    g.strokeStyle = this.ink("card");
    g.strokeText(text, x, y);
    g.fillStyle = color;
    g.fillText(text, x, y);
  }

  drawReserved() {
    if (!this.line.pool) return;
    const g = this.g;
    g.beginPath();
    this.eachStep((i, x0, x1) => {
      const y = this.yOf(this.line.reserved[i]);
      g.lineTo(x0, y);
      g.lineTo(x1, y);
    });
    g.strokeStyle = this.ink("text");
    g.lineWidth = 1.3;
    g.stroke();
  }

  drawStrip() {
    if (!this.strip) return;
    const g = this.g;
    const top = this.height - this.strip + 2;
    const names = [...new Set(this.line.strips.map(([, , name]) => name))];
    for (const [from, to, name] of this.line.strips) {
      const x0 = Math.max(0, this.xOf(from));
      const x1 = Math.min(this.width, this.xOf(to));
      if (x1 <= 0 || x0 >= this.width || x1 - x0 < .4) continue;
      g.fillStyle = `hsl(${(names.indexOf(name) * 67 + 200) % 360} 40% ${isDark() ? 32 : 82}%)`;
      g.fillRect(x0, top, x1 - x0 - .5, this.strip - 4);
      g.fillStyle = this.ink("text");
      g.textAlign = "left";
      const width = g.measureText(name).width;
      if (width + 8 < x1 - x0) g.fillText(name, x0 + 4, top + 14);
    }
    g.fillStyle = this.ink("faint");
    for (const step of this.line.steps) {
      const x = this.xOf(step);
      if (x >= 0 && x <= this.width) g.fillRect(x - .5, top - 3, 1.5, this.strip);
    }
  }

  mark(moment, color, dash) {
    const g = this.g;
    const x = this.xOf(moment) + Math.min(.5, this.width / (this.view[1] - this.view[0]) / 2);
    if (x < 0 || x > this.width) return null;
    g.strokeStyle = color;
    g.lineWidth = 1.5;
    g.setLineDash(dash);
    g.beginPath();
    g.moveTo(x, 0);
    g.lineTo(x, this.bottom);
    g.stroke();
    g.setLineDash([]);
    return x;
  }

  sideLabel(x, y, text, color) {
    const right = x + this.g.measureText(text).width + 8 > this.width;
    this.label(text, right ? x - 4 : x + 4, y, color, right ? "right" : "left");
  }

  drawMarks() {
    const peak = this.line.peak;
    const size = sizeText(this.line.live[this.line.sampleAt(peak)]);
    const at = this.mark(peak, this.ink("text"), [2, 3]);
    if (at !== null) this.sideLabel(at, 12, `peak ${size}`, this.ink("text"));
    this.line.refused.slice(0, 200).forEach(([moment, bytes], n) => {
      const x = this.mark(moment, this.ink("bad"), []);
      if (x !== null && n < 3) {
        this.sideLabel(x, 28 + 14 * n, `out of memory: ${sizeText(bytes)} asked for`, this.ink("bad"));
      }
    });
    if (this.picked !== null) this.mark(this.line.moments[this.picked], this.ink("accent"), []);
    if (this.hover !== null) this.mark(this.line.moments[this.hover], this.ink("faint"), [4, 3]);
    if (this.selection) {
      const [a, b] = this.selection;
      this.g.fillStyle = this.ink("accent");
      this.g.globalAlpha = .2;
      this.g.fillRect(Math.min(a, b), 0, Math.abs(b - a), this.bottom);
      this.g.globalAlpha = 1;
    }
  }

  // ---- what stands below the pointer, in words
  tell() {
    const i = this.hover;
    this.read.hidden = i === null;
    if (i === null) return;
    const {line} = this;
    const rows = [];
    for (let c = line.levels.length - 1; c >= 0; c -= 1) {
      if (line.levels[c][i] === 0) continue;
      const dot = element("i", {class: "dot"});
      dot.style.background = this.colors[c];
      rows.push(element("tr", c === this.band ? {class: "on"} : {}, element("td", {class: "number"},
        sizeText(line.levels[c][i])), element("td", {class: "code"}, dot, shorter(line.bandName(c)))));
    }
    const phases = line.strips.filter(([from, to]) => from <= line.moments[i] && line.moments[i] < to);
    const phase = phases.length ? `, ${phases[phases.length - 1][2]}` : "";
    const op = line.opText(i);
    this.read.replaceChildren(element("b", {}, line.momentText(i)), phase,
      ...(op ? [element("div", {class: "code op"}, shorter(op))] : []), element("div", {}, line.levelText(i)),
      element("table", {}, element("tbody", {}, ...rows)));
    Object.assign(this.read.dataset, {moment: line.moments[i], live: line.live[i], reserved: line.reserved[i]});
    this.canvas.setAttribute("aria-valuenow", line.moments[i]);
    this.canvas.setAttribute("aria-valuetext", `${line.momentText(i)}${op ? `, ${op}` : ""}: ${sizeText(line.live[i])} live`);
    const x = this.xOf(line.moments[i]);
    const room = this.read.offsetWidth;
    this.read.style.left = `${Math.max(0, x + 16 + room > this.width ? x - room - 16 : x + 16)}px`;
  }

  point(x, y) {
    this.hover = this.line.sampleAt(this.momentOf(Math.min(Math.max(x, 0), this.width - .01)));
    this.band = -1;
    let base = 0;
    for (let c = 0; c < this.line.levels.length && y !== undefined; c += 1) {
      const top = base + this.line.levels[c][this.hover];
      if (y <= this.yOf(base) && y > this.yOf(top)) this.band = c;
      base = top;
    }
    this.draw();
    this.tell();
  }

  leave() {
    this.hover = null;
    this.band = -1;
    this.draw();
    this.tell();
  }

  listen() {
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    new Pointers(this);
  }

  wheel(event) {
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.pan(event.deltaX / this.width);
    } else {
      const out = event.deltaY > 0;
      if (out && this.view[1] - this.view[0] >= this.full[1]) return;  // the page may scroll on
      this.zoom(out ? 1.25 : .8, this.momentOf(event.offsetX));
    }
    event.preventDefault();
    this.point(event.offsetX, event.offsetY);
  }

  key(event) {
    const {line} = this;
    const last = line.moments.length - 1;
    const here = this.hover ?? this.picked ?? line.sampleAt(line.peak);
    const far = Math.max(1, Math.round((line.sampleAt(this.view[1]) - line.sampleAt(this.view[0])) / 10));
    const by = event.shiftKey ? far : 1;
    const go = {ArrowLeft: here - by, ArrowRight: here + by, Home: 0, End: last, p: line.sampleAt(line.peak)}[event.key];
    if (go !== undefined) {
      this.hover = Math.min(Math.max(go, 0), last);
      this.band = -1;
      this.show(this.hover);
      this.draw();
      this.tell();
    } else if (event.key === "+" || event.key === "=") {
      this.zoom(.5, line.moments[here]);
    } else if (event.key === "-") {
      this.zoom(2, line.moments[here]);
    } else if (event.key === "0" || event.key === "Escape") {
      this.reset();
    } else if (event.key === "Enter" || event.key === " ") {
      this.pick(here);
    } else {
      return;
    }
    event.preventDefault();
  }
}

function isDark() { return matchMedia("(prefers-color-scheme: dark)").matches; }

// A path's end says more than its beginning.
function shorter(text) { return text.length > 60 ? `...${text.slice(-57)}` : text; }
