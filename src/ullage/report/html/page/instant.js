// Shows the pool at one moment: who held the bytes, and every segment with the blocks in it.

class Instant {
  constructor(line, marked, detail) {
    Object.assign(this, {line, marked, detail});
    this.title = element("h2", {class: "moment"});
    this.totals = element("p", {class: "totals"});
    this.op = element("p", {class: "code op"});
    this.owners = element("tbody");
    this.canvas = element("canvas", {class: "pool", tabindex: 0, role: "img", "aria-label":
      "segments of the pool with their blocks; left and right go from segment to segment"});
    this.fullest = element("tbody");
    this.pool = element("div", {}, element("h3", {}, "Segments"), element("p", {class: "hint"},
      "One after the other by address, to scale; colored: live, hatched: cached. Tap one to see what is in it."),
      this.canvas);
    this.cached = element("details", {}, element("summary", {}, "segments with the most cached bytes"),
      element("div", {class: "scroll"}, element("table", {class: "fullest"}, head("cached", "live", "of", "blocks",
        "address"), this.fullest)));
    const table = element("table", {class: "instant-owners"}, head("bytes", "share", "owner"), this.owners);
    this.scroll = element("div", {class: "scroll"}, table);
    this.root = element("section", {class: "instant"}, this.title, this.op, this.totals, this.pool, this.scroll,
      this.cached);
    this.canvas.addEventListener("pointerdown", (event) => this.point(event.offsetX, event.offsetY));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    const again = () => this.draw();
    new ResizeObserver(again).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    marked.listeners.push(again);
  }

  show(state) {
    const {line} = this;
    this.state = state;
    this.chosen = null;
    const {moment, live} = state;
    this.lay(moment);
    const reserved = this.segments.length ? this.segments.reduce((sum, s) => sum + s.bytes, 0) : state.reserved;
    const cached = Math.max(0, state.reserved - live);
    const when = line.momentText(state);
    const phase = line.phaseText(state);
    this.title.textContent = (when.startsWith("before") ? `B${when.slice(1)}` : `At ${when}`) + (phase ? `, ${phase}` : "");
    const op = line.opText(state);
    this.op.textContent = op ? `in ${op}` : "";
    this.op.hidden = !op;
    this.totals.textContent = line.levelText(state) + (line.pool ? `, ${sizeText(cached)} cached` : "") + (this.segments.length ? ` in ${countText(this.segments.length, "segment")}` : "") +
      (this.drawn < live ? `; ${sizeText(live - this.drawn)} of the live bytes are in small storages that are not drawn` : "");
    Object.assign(this.root.dataset, {moment, live, reserved, segments: this.segments.length});
    this.listOwners();
    this.listFullest();
    this.pool.hidden = this.cached.hidden = this.segments.length === 0;
    this.draw();
  }

  // Finds which blocks are in which segments at the moment.
  lay(moment) {
    const {line} = this;
    const blocks = line.presentAt(line.storages, moment);
    this.blocks = blocks;
    this.drawn = blocks.reduce((sum, b) => sum + line.storages.bytes[b], 0);
    this.segments = line.presentAt(line.ranges, moment).map((i) => ({at: line.ranges.at[i], bytes: line.ranges.bytes[i],
      from: line.ranges.from[i], blocks: [], live: 0}));
    let s = 0;
    for (const b of blocks) {
      const at = line.storages.at[b];
      while (s < this.segments.length && this.segments[s].at + this.segments[s].bytes <= at) s += 1;
      if (s === this.segments.length) break;
      if (at < this.segments[s].at) continue;
      this.segments[s].blocks.push(b);
      this.segments[s].live += Math.min(line.storages.bytes[b], this.segments[s].at + this.segments[s].bytes - at);
    }
  }

  listOwners() {
    const {line} = this;
    const {live} = this.state;
    let rows = [];
    if (this.drawn === live) {  // every storage is here: all owners by name
      const sums = new Map();
      for (const b of this.blocks) {
        const owner = line.storages.owner[b];
        sums.set(owner, (sums.get(owner) ?? 0) + line.storages.bytes[b]);
      }
      rows = [...sums].map(([owner, bytes]) => ({owner, bytes, name: line.ownerName(owner)}));
    } else {
      rows = line.levels.map((_, c) => ({owner: c < line.stacked ? c : -1, bytes: this.state.levels[c],
        name: line.bandName(c)})).filter(({bytes}) => bytes > 0);
    }
    rows.sort((a, b) => b.bytes - a.bytes);
    const rest = rows.splice(12);
    if (rest.length) {
      rows.push({owner: -1, bytes: rest.reduce((sum, row) => sum + row.bytes, 0), name: `${rest.length} others`});
    }
    this.owners.replaceChildren(...rows.map(({owner, bytes, name}) => {
      const parts = [dot(line.ownerColor(owner)), name];
      const shown = owner < 0 ? parts : [element("button", {type: "button", class: "link"}, ...parts)];
      if (owner >= 0) shown[0].addEventListener("click", () => this.detail.owner(this.scroll, owner, this.state));
      return element("tr", {}, element("td", {class: "number", "data-bytes": bytes}, sizeText(bytes)),
        element("td", {class: "number"}, percentText(bytes, live)), element("td", {class: "code"}, ...shown));
    }));
  }

  listFullest() {
    const most = this.segments.map((s, n) => ({...s, n, cached: Math.max(0, s.bytes - s.live)}))
      .filter(({cached}) => cached > 0).sort((a, b) => b.cached - a.cached).slice(0, 12);
    this.fullest.replaceChildren(...most.map((s) => element("tr", {},
      element("td", {class: "number"}, sizeText(s.cached)), element("td", {class: "number"}, sizeText(s.live)),
      element("td", {class: "number"}, sizeText(s.bytes)), element("td", {class: "number"}, String(s.blocks.length)),
      element("td", {class: "code"}, this.line.addressText(s.at)))));
  }

  // Draws segments as a ribbon broken into rows, to scale but at least 3 pixels wide.
  draw() {
    const width = this.canvas.clientWidth;
    if (!this.segments || this.segments.length === 0 || width === 0) return;
    const total = this.segments.reduce((sum, s) => sum + s.bytes, 0);
    const rows = Math.min(40, Math.max(2, Math.ceil(this.segments.length / 10), Math.ceil(900 / width)));
    const scale = rows * width / total;
    const high = 18;
    let x = 0;
    let y = 0;
    this.places = [];  // {segment, x, y, width, skipped}: parts of segments, one a row
    this.segments.forEach((segment, n) => {
      const all = Math.max(3, segment.bytes * scale);
      for (let done = 0; done < all - .01;) {
        if (width - x < 1) { x = 0; y += 1; }
        const part = Math.min(all - done, width - x);
        this.places.push({n, x, y: y * (high + 3), width: part, skipped: done, perByte: all / segment.bytes});
        done += part;
        x += part;
      }
      x += 1;
    });
    this.canvas.style.height = `${(y + 1) * (high + 3)}px`;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round((y + 1) * (high + 3) * ratio);
    const g = this.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint(g, high);
  }

  paint(g, high) {
    const {storages} = this.line;
    const {chosen, found} = this.marked;
    const [ground, faint, text, accent] = ["ground", "faint", "text", "accent"].map(ink);
    for (const place of this.places) {
      const segment = this.segments[place.n];
      g.save();
      g.beginPath();
      g.rect(place.x, place.y, place.width, high);
      g.clip();
      g.fillStyle = ground;
      g.fillRect(place.x, place.y, place.width, high);
      g.strokeStyle = faint;
      g.globalAlpha = .35;
      for (let x = place.x - high; x < place.x + place.width; x += 6) {
        g.beginPath();
        g.moveTo(x, place.y + high);
        g.lineTo(x + high, place.y);
        g.stroke();
      }
      g.globalAlpha = 1;
      for (const b of segment.blocks) {
        const from = (storages.at[b] - segment.at) * place.perByte - place.skipped;
        const wide = storages.bytes[b] * place.perByte;
        if (from > place.width || from + wide < 0) continue;
        g.globalAlpha = found && !found[b] ? .2 : 1;
        g.fillStyle = b === chosen ? accent : this.line.storageColor(b);
        g.fillRect(place.x + from, place.y, Math.max(wide - (wide > 4 ? .5 : 0), .5), high);
        if (b === chosen) this.frame(g, place.x + from, place.y, Math.max(wide, 3), high, text);
      }
      g.restore();
      g.lineWidth = place.n === this.chosen ? 2 : 1;
      g.strokeStyle = place.n === this.chosen ? accent : faint;
      g.strokeRect(place.x + .5, place.y + .5, Math.max(place.width - 1, 1), high - 1);
    }
  }

  point(x, y) {
    const place = this.places?.find((p) => x >= p.x && x <= p.x + p.width && y >= p.y && y <= p.y + 20);
    if (!place) return;
    const offset = this.segments[place.n].at + (x - place.x + place.skipped) / place.perByte;
    this.choose(place.n, offset);
  }

  frame(g, x, y, wide, high, color) {
    g.lineWidth = 2;
    g.strokeStyle = color;
    g.strokeRect(x + 1, y + 1, Math.max(wide - 2, 1), high - 2);
  }

  choose(n, offset) {
    const {line} = this;
    const {storages} = line;
    const segment = this.segments[n];
    const block = segment.blocks.find((b) => storages.at[b] <= offset && offset < storages.at[b] + storages.bytes[b]);
    const born = segment.from === 0 ? "from before the first event" : `taken at event ${segment.from - 1}`;
    const words = element("div", {}, element("b", {}, `segment ${n + 1} of ${this.segments.length}`), ` at ${line.addressText(segment.at)}, ` +
      `${sizeText(segment.bytes)}, ${born}: ${sizeText(segment.live)} live in ${countText(segment.blocks.length, "block")}, ` +
      `${sizeText(Math.max(0, segment.bytes - segment.live))} cached`);
    this.chosen = n;
    if (block !== undefined) {
      this.detail.storage(this.canvas, block, words);
    } else {
      this.marked.choose(-1);
      this.detail.say(this.canvas, words);
    }
    this.detail.root.dataset.segment = n;
  }

  key(event) {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (by === undefined || !this.segments?.length) return;
    const n = Math.min(Math.max((this.chosen ?? -1) + by, 0), this.segments.length - 1);
    this.choose(n, -1);
    event.preventDefault();
  }
}
