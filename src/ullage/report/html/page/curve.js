// The curve of live bytes as stacked owners, with the reserved bytes above: zoom, hover and choice of a moment. Where few
// enough storages are in view, each is a shape of its own within its owner's band.

const SHAPES = 3000;  // storages that are drawn one by one
const ROW = 20;       // pixels: a row of phases, first those that were deduced, then those that the program named

class Curve {
  // onPick(state, storage, band) is called when a person chooses a moment. Storage and band are -1 unless they were
  // pointed at.
  constructor(root, line, marked, onPick) {
    this.line = line;
    this.marked = marked;
    this.onPick = onPick;
    this.full = [0, line.events + 1];
    this.view = [...this.full];
    this.hover = null;    // a state
    this.band = -1;       // the column below the pointer
    this.storage = -1;    // the storage below the pointer
    this.picked = null;   // a state
    this.scene = element("canvas");
    this.canvas = element("canvas", {tabindex: 0, role: "slider", "aria-label": "live bytes over the events",
      "aria-valuemin": 0, "aria-valuemax": line.events});
    this.read = element("div", {class: "read", hidden: "", "aria-live": "polite"});
    root.append(element("div", {class: "chart"}, this.canvas, this.read));
    this.listen();
    const again = () => { this.stale = true; this.draw(); };
    new ResizeObserver(again).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    marked.listeners.push(again);
  }

  // ---- places
  xOf(moment) { return (moment - this.view[0]) / (this.view[1] - this.view[0]) * this.width; }
  momentOf(x) { return this.view[0] + x / this.width * (this.view[1] - this.view[0]); }
  yOf(bytes) { return this.bottom - bytes / this.most * (this.bottom - this.top); }

  setView(from, to) {
    const span = Math.min(Math.max(to - from, Math.min(8, this.full[1])), this.full[1]);
    const begin = Math.min(Math.max(from, 0), this.full[1] - span);
    this.view = [begin, begin + span];
    this.stale = true;
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

  show({moment}) {  // brings a state into view
    if (moment < this.view[0] || moment >= this.view[1]) {
      const half = (this.view[1] - this.view[0]) / 2;
      this.setView(moment - half, moment + half);
    }
  }

  pick(state, storage = -1, band = -1) {
    this.picked = state;
    this.hover = state;
    this.storage = storage;
    this.show(state);
    this.draw();
    this.tell();
    this.onPick(state, storage, band);
  }

  // ---- what is in view
  // Sets `steps`, the states that are drawn, and `shapes`, the storages that are drawn one by one.
  lay() {
    const {line} = this;
    const present = line.storagesIn(this.view[0], this.view[1]);
    this.shapes = present.length <= SHAPES ? present : [];
    this.steps = this.shapes.length && line.exact ? this.exactSteps(present) : this.sampledSteps();
    this.most = 1.06 * this.steps.reduce((most, {live, reserved}) => Math.max(most, live, reserved), 1);
    this.placeShapes();
  }

  // Keeps at most one moment for each pixel: of several, the one with the most live bytes.
  onePerPixel(count, momentOf, liveOf) {
    const chosen = [];
    let pixel = NaN;
    for (let i = 0; i < count; i += 1) {
      const at = Math.floor(Math.max(0, this.xOf(momentOf(i))));
      if (at !== pixel) {
        chosen.push(i);
        pixel = at;
      } else if (liveOf(i) > liveOf(chosen[chosen.length - 1])) {
        chosen[chosen.length - 1] = i;
      }
    }
    return chosen;
  }

  sampledSteps() {
    const {line} = this;
    const first = line.sampleAt(this.view[0]);
    return this.onePerPixel(line.sampleAt(this.view[1]) - first + 1, (i) => line.moments[first + i],
      (i) => line.live[first + i]).map((i) => line.sampled(first + i));
  }

  // Returns every change of what is in view, also between two samples.
  exactSteps(present) {
    const {line} = this;
    const begin = Math.floor(this.view[0]);
    const live = sumOver(line.storages, present, begin);
    const ranges = line.ranges.from.map((_, i) => i).filter((i) => line.ranges.from[i] + line.ranges.lasts[i] > begin);
    const reserved = sumOver(line.ranges, [...ranges], begin);
    const moments = [...new Set([...live.moments, ...reserved.moments])].filter((moment) => moment < this.view[1])
      .sort((a, b) => a - b);
    const at = (sums, moment) => sums.levels[lastNotAfter(sums.moments, moment)];
    const levels = moments.map((moment) => at(live, moment));
    return this.onePerPixel(moments.length, (i) => moments[i], (i) => levels[i]).map((i) => {
      const moment = moments[i];
      const sample = line.sampleAt(moment);
      const held = line.ranges.from.length ? at(reserved, moment) : line.reserved[sample];
      return {moment, sample, live: levels[i], reserved: held, levels: new Float64Array(line.levels.length)};
    });
  }

  // Stacks the storages of a column by age: `floors` of a storage has its lower edge at each of its steps.
  placeShapes() {
    const {line, steps} = this;
    this.floors = new Map();
    if (this.shapes.length === 0) return;
    const moments = steps.map(({moment}) => moment);
    const own = line.exact;  // else the levels are known, and some storages are not here
    const filled = line.levels.map(() => new Float64Array(steps.length));
    for (const b of this.shapes) {
      const column = filled[line.columnOf(b)];
      const [from, to] = [line.storages.from[b], line.storages.from[b] + line.storages.lasts[b]];
      const first = moments[0] >= from ? 0 : lastNotAfter(moments, from - 1) + 1;
      const last = moments[0] >= to ? 0 : lastNotAfter(moments, to - 1) + 1;
      if (first >= last) continue;
      this.floors.set(b, {first, floor: column.slice(first, last)});
      for (let m = first; m < last; m += 1) column[m] += line.storages.bytes[b];
    }
    if (own && this.shapes.length) steps.forEach(({levels}, m) => { filled.forEach((column, c) => { levels[c] = column[m]; }); });
    // The floors within the columns become floors within the stack.
    const base = steps.map(({levels}) => { let sum = 0; return Array.from(levels, (bytes) => (sum += bytes) - bytes); });
    for (const [b, {first, floor}] of this.floors) {
      for (let m = 0; m < floor.length; m += 1) floor[m] += base[first + m][line.columnOf(b)];
    }
  }

  xOfStep(m) { return m < this.steps.length ? Math.max(0, this.xOf(this.steps[m].moment)) : this.width; }

  pathOf(b) {
    const {first, floor} = this.floors.get(b);
    const path = new Path2D();
    const bytes = this.line.storages.bytes[b];
    path.moveTo(this.xOfStep(first), this.yOf(floor[0]));
    for (let m = 0; m < floor.length; m += 1) {
      if (m > 0 && floor[m] !== floor[m - 1]) path.lineTo(this.xOfStep(first + m), this.yOf(floor[m - 1] + bytes));
      if (m === 0 || floor[m] !== floor[m - 1]) path.lineTo(this.xOfStep(first + m), this.yOf(floor[m] + bytes));
    }
    const end = this.xOfStep(first + floor.length);
    path.lineTo(end, this.yOf(floor[floor.length - 1] + bytes));
    path.lineTo(end, this.yOf(floor[floor.length - 1]));
    for (let m = floor.length - 1; m > 0; m -= 1) {
      if (floor[m] === floor[m - 1]) continue;
      path.lineTo(this.xOfStep(first + m), this.yOf(floor[m]));
      path.lineTo(this.xOfStep(first + m), this.yOf(floor[m - 1]));
    }
    path.closePath();
    return path;
  }

  // ---- drawing
  draw() {
    const box = this.canvas.getBoundingClientRect();
    if (box.width === 0) return;
    const ratio = devicePixelRatio || 1;
    if (this.stale) {
      this.stale = false;
      this.width = box.width;
      this.height = box.height;
      this.rows = Math.max(...this.line.strips.map(([, , , own]) => own + 1), this.line.steps.length ? 1 : 0);
      this.strip = ROW * this.rows;
      this.top = 18;
      this.bottom = this.height - this.strip - 4;
      this.lay();
      this.paint(ratio);
    }
    const g = this.g = this.begin(this.canvas, ratio);
    g.drawImage(this.scene, 0, 0, this.width, this.height);
    this.drawPointed();
    this.drawMarks();
    this.canvas.dataset.from = this.view[0];
    this.canvas.dataset.to = this.view[1];
    this.canvas.dataset.shapes = this.shapes.length;
  }

  begin(canvas, ratio) {
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.font = "12px system-ui, sans-serif";
    return g;
  }

  // Draws all that does not follow the pointer.
  paint(ratio) {
    this.colors = this.line.colors();
    this.g = this.begin(this.scene, ratio);
    this.drawBands();
    this.drawShapes();
    this.drawScale();
    nameBands(this);
    this.drawReserved();
    this.drawFound();
    this.drawStrip();
  }

  // Calls step(m, x0, x1) for every drawn step: a level holds until the next one.
  eachStep(step) {
    for (let m = 0; m < this.steps.length; m += 1) step(m, this.xOfStep(m), Math.max(this.xOfStep(m + 1), this.xOfStep(m)));
  }

  bandPath(c) {
    const path = new Path2D();
    this.eachStep((m, x0, x1) => {
      const {levels} = this.steps[m];
      if (levels[c] === 0) return;
      let base = 0;
      for (let below = 0; below < c; below += 1) base += levels[below];
      const y = this.yOf(base + levels[c]);
      path.rect(x0, y, Math.max(x1 - x0, .6) + .3, this.yOf(base) - y);
    });
    return path;
  }

  drawBands() {
    const g = this.g;
    this.paths = this.colors.map((_, c) => this.bandPath(c));
    this.paths.forEach((path, c) => {
      g.globalAlpha = this.marked.hasFound(c) ? 1 : .3;
      g.fillStyle = this.colors[c];
      g.fill(path);
    });
    g.globalAlpha = 1;
  }

  drawShapes() {
    const g = this.g;
    const {storages} = this.line;
    const card = ink("card");
    g.lineWidth = .7;
    for (const b of this.floors.keys()) {
      const out = this.marked.found && !this.marked.found[b];
      const high = storages.bytes[b] / this.most * (this.bottom - this.top);
      const other = this.line.columnOf(b) === this.line.stacked && storages.owner[b] >= 0;
      if (high < 2.5 && !out && !other) continue;
      const path = this.pathOf(b);
      if (other) {  // its band is of many owners
        g.fillStyle = this.line.ownerColor(storages.owner[b]);
        g.fill(path);
      }
      g.globalAlpha = .75;
      g.fillStyle = g.strokeStyle = card;
      if (out) g.fill(path);
      if (high >= 2.5) g.stroke(path);
      g.globalAlpha = 1;
    }
  }

  // Draws the band below the pointer and the storage in it, and the chosen storage with its lifetime along the bottom.
  drawPointed() {
    const g = this.g;
    const {chosen} = this.marked;
    if (this.band >= 0 && this.paths[this.band]) {
      g.globalAlpha = .25;
      g.fillStyle = ink("text");
      g.fill(this.paths[this.band]);
    }
    for (const b of [this.storage, chosen]) {
      if (!this.floors.has(b)) continue;
      const path = this.pathOf(b);
      g.globalAlpha = b === chosen ? .55 : .35;
      g.fillStyle = ink(b === chosen ? "accent" : "card");
      g.fill(path);
      g.globalAlpha = 1;
      g.lineWidth = 1.5;
      g.strokeStyle = ink(b === chosen ? "accent" : "text");
      g.stroke(path);
    }
    g.globalAlpha = 1;
    if (chosen < 0) return;
    const {from, lasts} = this.line.storages;
    const [x0, x1] = [this.xOf(from[chosen]), this.xOf(from[chosen] + lasts[chosen])];
    g.fillStyle = ink("accent");
    if (x1 > 0 && x0 < this.width) g.fillRect(Math.max(0, x0), this.bottom - 1, Math.max(2, Math.min(x1, this.width) - Math.max(0, x0)), 4);
  }

  drawFound() {
    const {marked, line} = this;
    if (!marked.found) return;
    const sums = marked.foundSums;
    const g = this.g;
    g.beginPath();
    this.eachStep((m, x0, x1) => {
      const y = this.yOf(sums.levels[lastNotAfter(sums.moments, this.steps[m].moment)]);
      g.lineTo(x0, y);
      g.lineTo(x1, y);
    });
    g.strokeStyle = ink("bad");
    g.lineWidth = 2;
    g.stroke();
  }

  drawScale() {
    const g = this.g;
    let step = 2 ** Math.floor(Math.log2(this.most / 4));
    while (this.most / step > 6) step *= 2;
    g.strokeStyle = ink("line");
    g.lineWidth = 1;
    this.scale = [];  // where the figures stand, which names of bands must not cover
    for (let bytes = 0; bytes < this.most; bytes += step) {
      const y = Math.round(this.yOf(bytes)) + .5;
      g.globalAlpha = .6;
      g.beginPath();
      g.moveTo(0, y);
      g.lineTo(this.width, y);
      g.stroke();
      g.globalAlpha = 1;
      if (bytes === 0) continue;
      this.label(sizeText(bytes), 4, y - 4);
      this.scale.push({right: 4 + g.measureText(sizeText(bytes)).width, at: y - 4});
    }
  }

  label(text, x, y, color = ink("text"), align = "left") {
    const g = this.g;
    g.textAlign = align;
    g.lineWidth = 3;
    g.lineJoin = "round";
    g.strokeStyle = ink("card");
    g.strokeText(text, x, y);
    g.fillStyle = color;
    g.fillText(text, x, y);
  }

  drawReserved() {
    if (!this.line.pool) return;
    const g = this.g;
    g.beginPath();
    this.eachStep((i, x0, x1) => {
      const y = this.yOf(this.steps[i].reserved);
      g.lineTo(x0, y);
      g.lineTo(x1, y);
    });
    g.strokeStyle = ink("text");
    g.lineWidth = 1.3;
    g.stroke();
  }

  // Draws neighbours of one name as one if no gap between them can be seen, so that there is room for the name.
  drawStrip() {
    if (!this.strip) return;
    const g = this.g;
    const top = this.height - this.strip + 2;
    const drawn = [];
    for (const [from, to, name, row] of this.line.strips) {
      const x0 = Math.max(0, this.xOf(from));
      const x1 = Math.min(this.width, this.xOf(to));
      if (x1 <= 0 || x0 >= this.width || x1 - x0 < .4) continue;
      const last = drawn[drawn.length - 1];
      if (last && last.name === name && last.row === row && x0 - last.x1 < 2) last.x1 = Math.max(last.x1, x1);
      else drawn.push({x0, x1, name, row});
    }
    for (const {x0, x1, name, row} of drawn) {
      g.fillStyle = this.line.stripColor(name);
      g.fillRect(x0, top + row * ROW, x1 - x0 - .5, ROW - 3);
      g.fillStyle = ink("text");
      g.textAlign = "left";
      const text = fitting(name, (part) => g.measureText(part).width + 8 < x1 - x0);
      if (text) g.fillText(text, x0 + 4, top + row * ROW + 13);
    }
    g.fillStyle = ink("faint");
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
    const at = this.mark(peak, ink("text"), [2, 3]);
    if (at !== null) this.sideLabel(at, 12, `peak ${size}`, ink("text"));
    this.line.refused.slice(0, 200).forEach(([moment, bytes], n) => {
      const x = this.mark(moment, ink("bad"), []);
      if (x !== null && n < 3) {
        this.sideLabel(x, 28 + 14 * n, `out of memory: ${sizeText(bytes)} asked for`, ink("bad"));
      }
    });
    if (this.picked !== null) this.mark(this.picked.moment, ink("accent"), []);
    if (this.hover !== null) this.mark(this.hover.moment, ink("faint"), [4, 3]);
    if (this.selection) {
      const [a, b] = this.selection;
      this.g.fillStyle = ink("accent");
      this.g.globalAlpha = .2;
      this.g.fillRect(Math.min(a, b), 0, Math.abs(b - a), this.bottom);
      this.g.globalAlpha = 1;
    }
  }

  // ---- what stands below the pointer, in words
  tell() {
    const state = this.hover;
    this.read.hidden = state === null;
    if (state === null) return;
    const {line} = this;
    const rows = [];
    for (let c = state.levels.length - 1; c >= 0; c -= 1) {
      if (state.levels[c] === 0) continue;
      rows.push(element("tr", c === this.band ? {class: "on"} : {}, element("td", {class: "number"},
        sizeText(state.levels[c])), element("td", {class: "code"}, dot(this.colors[c]), line.shortBandName(c))));
    }
    const phase = line.phaseText(state);
    const op = line.opText(state);
    const tensor = this.storage >= 0 ? [element("div", {class: "tensor"}, element("b", {},
      `tensor of ${sizeText(line.storages.bytes[this.storage])}`), `, ${line.lifeText(this.storage)}`)] : [];
    this.read.replaceChildren(element("b", {}, line.momentText(state)), phase ? `, ${phase}` : "",
      ...(op ? [element("div", {class: "code op"}, shorter(op))] : []), element("div", {}, line.levelText(state)),
      ...tensor, element("table", {}, element("tbody", {}, ...rows)));
    Object.assign(this.read.dataset, {moment: state.moment, live: state.live, reserved: state.reserved,
      storage: this.storage});
    this.canvas.setAttribute("aria-valuenow", state.moment);
    this.canvas.setAttribute("aria-valuetext",
      `${line.momentText(state)}${op ? `, ${op}` : ""}: ${sizeText(state.live)} live`);
    const x = this.xOf(state.moment);
    const room = this.read.offsetWidth;
    this.read.style.left = `${Math.max(0, x + 16 + room > this.width ? x - room - 16 : x + 16)}px`;
  }

  point(x, y) {
    const moment = this.momentOf(Math.min(Math.max(x, 0), this.width - .01));
    const m = lastNotAfter(this.steps.map((step) => step.moment), moment);
    this.hover = this.steps[m];
    this.band = -1;
    this.storage = -1;
    let base = 0;
    for (let c = 0; c < this.hover.levels.length && y !== undefined; c += 1) {
      const top = base + this.hover.levels[c];
      if (y <= this.yOf(base) && y > this.yOf(top)) this.band = c;
      base = top;
    }
    if (this.band >= 0) this.storage = this.shapeAt(m, y);
    this.draw();
    this.tell();
  }

  shapeAt(m, y) {
    for (const [b, {first, floor}] of this.floors) {
      if (m < first || m >= first + floor.length) continue;
      const low = floor[m - first];
      if (y <= this.yOf(low) && y > this.yOf(low + this.line.storages.bytes[b])) return b;
    }
    return -1;
  }

  leave() {
    this.hover = null;
    this.band = -1;
    this.storage = -1;
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

  // Returns the state some events further, between two samples too if that is known.
  further(state, by) {
    const {line} = this;
    if (line.exact) return line.state(state.moment + by);
    return line.sampled(Math.min(Math.max(state.sample + by, 0), line.moments.length - 1));
  }

  key(event) {
    const {line} = this;
    const peak = line.state(line.peak);
    const here = this.hover ?? this.picked ?? peak;
    const inView = line.exact ? this.view[1] - this.view[0] : line.sampleAt(this.view[1]) - line.sampleAt(this.view[0]);
    const by = event.shiftKey ? Math.max(1, Math.round(inView / 10)) : 1;
    const go = {ArrowLeft: () => this.further(here, -by), ArrowRight: () => this.further(here, by),
      Home: () => line.state(0), End: () => line.state(line.events), p: () => peak}[event.key];
    if (go !== undefined) {
      this.hover = go();
      this.band = -1;
      this.storage = -1;
      this.show(this.hover);
      this.draw();
      this.tell();
    } else if (event.key === "+" || event.key === "=") {
      this.zoom(.5, here.moment);
    } else if (event.key === "-") {
      this.zoom(2, here.moment);
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

// Returns the text, or as much of its beginning as fits; empty if that is less than three letters.
function fitting(text, fits) {
  if (fits(text)) return text;
  for (let letters = text.length - 1; letters >= 3; letters -= 1) {
    const part = `${text.slice(0, letters)}\u2026`;
    if (fits(part)) return part;
  }
  return "";
}
