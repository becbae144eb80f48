// What the program wrote into the page, made usable: columns of differences become columns of numbers.
// A moment m is the state after event m - 1; moment 0 is before the first event.
// A state is {moment, sample, live, reserved, levels}: the bytes at a moment, those of each band in `levels`; `sample` is
// the last sample that is not after it.

// Hues of page.css, by the names of trace::Category.
const HUES = {
  "parameters": 217, "gradients": 26, "optimizer state": 265, "activations": 150, "inputs": 187, "temporaries": 45,
  "library workspaces": 330, "buffers": 303, "workspace": 88, "weight copies": 205,
};

// Chooses one color for each band: the hue tells the category, the lightness tells its owners apart. A category with more
// owners than lightnesses goes on with paler colors.
function ownerColors(owners, dark) {
  const steps = dark ? [56, 44, 66, 38, 72, 50, 61, 34] : [46, 60, 36, 70, 52, 30, 65, 41];
  const seen = {};
  return owners.map(({category}) => {
    const nth = seen[category] = (seen[category] ?? -1) + 1;
    const light = steps[nth % steps.length];
    const round = Math.min(Math.floor(nth / steps.length), 2);
    return category in HUES ? `hsl(${HUES[category]} ${[58, 28, 90][round]}% ${light}%)` :
      `hsl(220 ${[8, 20, 0][round]}% ${light}%)`;
  });
}

class Line {
  constructor(json) {
    Object.assign(this, json);
    this.moments = summed(json.moments);
    this.times = summed(json.times);
    this.reserved = summed(json.reserved);
    this.levels = json.levels.map(summed);
    this.steps = summed(json.steps);
    this.live = this.reserved.map((_, i) => this.levels.reduce((sum, column) => sum + column[i], 0));
    for (const placed of [this.storages, this.ranges]) placed.from = summed(placed.from);
    this.hasHistory = this.events > 1;
    // Between two samples the state follows from the storages, if all are here; the op that ran does not.
    this.exact = this.leftOut === 0 && (this.ops.length === 0 || this.moments.length > this.events);
  }

  // Index of the last sample that is not after the moment.
  sampleAt(moment) { return lastNotAfter(this.moments, moment); }

  sampled(i) {
    return {moment: this.moments[i], sample: i, live: this.live[i], reserved: this.reserved[i],
      levels: this.levels.map((column) => column[i])};
  }

  // Returns the state at a moment. If that is not known, returns the state of the sample before it.
  state(moment) {
    const whole = Math.min(Math.max(Math.floor(moment), 0), this.events);
    const sample = this.sampleAt(whole);
    if (!this.exact || this.moments[sample] === whole) return this.sampled(sample);
    const levels = this.levels.map(() => 0);
    for (const b of this.presentAt(this.storages, whole)) levels[this.columnOf(b)] += this.storages.bytes[b];
    return {moment: whole, sample, live: levels.reduce((sum, bytes) => sum + bytes, 0), levels,
      reserved: this.reservedAt(whole, sample)};
  }

  reservedAt(moment, sample) {
    if (this.ranges.from.length === 0 || this.moments[sample] === moment) return this.reserved[sample];
    return this.presentAt(this.ranges, moment).reduce((sum, i) => sum + this.ranges.bytes[i], 0);
  }

  // Storages that exist at some time between two moments.
  storagesIn(from, to) {
    const found = [];
    const {storages} = this;
    for (let b = 0; b < storages.from.length && storages.from[b] < to; b += 1) {
      if (storages.from[b] + storages.lasts[b] > from) found.push(b);
    }
    return found;
  }

  columnOf(b) {
    const owner = this.storages.owner[b];
    return owner >= 0 && owner < this.stacked ? owner : this.stacked;
  }

  storageColor(b) { return this.ownerColor(this.storages.owner[b]); }
  ownerColor(owner) { return this.allColors()[owner] ?? ink("faint"); }

  // Returns the color of each column of `levels`.
  colors() { return [...this.allColors().slice(0, this.stacked), ink("line")]; }

  // Returns the owners' colors; they change with the person's choice of light or dark.
  allColors() {
    if (this.dark !== isDark()) {
      this.dark = isDark();
      this.ownersColors = ownerColors(this.owners, this.dark);
    }
    return this.ownersColors;
  }

  bandName(column) { return column < this.stacked ? this.ownerName(column) : "all others"; }

  // The name with its category, without the beginning of a long path.
  shortBandName(column) {
    return column < this.stacked ? `${this.owners[column].category}: ${shorter(this.owners[column].name)}` : "all others";
  }

  // Two owners may have one name and differ in the category.
  ownerName(index) {
    return index < 0 ? "another owner" : `${this.owners[index].category}: ${this.owners[index].name}`;
  }

  // The frames of a stack, innermost first.
  framesOf(node) {
    const {frames, frame, up} = this.stacks;
    const found = [];
    for (let at = node; at >= 0; at = up[at] > 0 ? at - up[at] : -1) found.push(frames[frame[at]]);
    return found;
  }

  momentText({moment, sample}) {
    if (!this.hasHistory) return "the end, when the file was written";
    const time = this.times.length && this.moments[sample] === moment ? `, ${timeText(this.times[sample])}` : "";
    return moment === 0 ? "before the first event" : `event ${moment - 1}${time}`;
  }

  // "events 12 to 40": when a storage existed.
  lifeText(b) {
    const from = this.storages.from[b];
    const to = from + this.storages.lasts[b];
    const begin = from === 0 ? "from before the first event" : `from event ${from - 1}`;
    return `${begin} ${to > this.events ? "on, never freed" : `to ${to - 1}`}`;
  }

  // The op that ran at a state, of Ullage's own traces; empty: none, or not recorded.
  opText({sample}) { return this.ops[this.opAt[sample]] ?? ""; }

  // The names of the phases, in the order in which they first occur.
  stripNames() { return [...new Set(this.strips.map(([, , name]) => name))]; }

  stripColor(name) {
    const hue = PHASE_HUES[name] ?? (this.stripNames().indexOf(name) * 67 + 200) % 360;
    return `hsl(${hue} 40% ${isDark() ? 32 : 82}%)`;
  }

  // The phase of the event that led to a state.
  phaseText({moment}) {
    const phases = this.strips.filter(([from, to]) => from < moment && moment <= to);
    return phases.length ? phases[phases.length - 1][2] : "";
  }

  // "1.00 GiB live, 2.00 GiB reserved"; a trace knows no reserved bytes.
  levelText(state) {
    const live = `${sizeText(state.live)} live`;
    return this.pool ? `${live}, ${sizeText(state.reserved)} reserved` : live;
  }

  // Indices of what is there at a moment, by address.
  presentAt(placed, moment) {
    const found = [];
    for (let i = 0; i < placed.from.length; i += 1) {
      if (placed.from[i] <= moment && moment < placed.from[i] + placed.lasts[i]) found.push(i);
    }
    return found.sort((a, b) => placed.at[a] - placed.at[b]);
  }

  addressText(offset) { return `0x${(BigInt(this.base) + BigInt(offset)).toString(16)}`; }

  // Says what the events from one moment to another did: [{moment, bytes, what, storage}], `bytes` negative if they
  // went. An event that changed nothing, or a storage that is not on the page, is not among them.
  changes(from, to) {
    const found = [];
    const note = (moment, bytes, what, storage = -1) => {
      if (from <= moment && moment <= to) found.push({moment, bytes, what, storage});
    };
    const {storages, ranges} = this;
    for (let b = 0; b < storages.from.length && storages.from[b] <= to; b += 1) {
      if (storages.from[b] > 0) note(storages.from[b], storages.bytes[b], "allocated", b);
      if (storages.from[b] + storages.lasts[b] <= this.events) {
        note(storages.from[b] + storages.lasts[b], -storages.bytes[b], "freed", b);
      }
    }
    for (let i = 0; i < ranges.from.length; i += 1) {
      if (ranges.from[i] > 0) note(ranges.from[i], ranges.bytes[i], "segment taken from the device");
      if (ranges.from[i] + ranges.lasts[i] <= this.events) {
        note(ranges.from[i] + ranges.lasts[i], -ranges.bytes[i], "segment given back");
      }
    }
    for (const [moment, bytes] of this.refused) note(moment, bytes, "out of memory: refused");
    return found.sort((a, b) => a.moment - b.moment);
  }

  // Returns one byte for each storage: whether its owner or a frame of its stack has the text.
  matching(text) {
    const wanted = text.toLowerCase();
    const has = (one) => one.toLowerCase().includes(wanted);
    const frame = this.stacks.frames.map(has);
    const node = [];
    this.stacks.frame.forEach((f, at) => { node.push(frame[f] || (this.stacks.up[at] > 0 && node[at - this.stacks.up[at]])); });
    const owner = this.owners.map((_, i) => has(this.ownerName(i)));
    return Uint8Array.from(this.storages.owner, (o, b) => (owner[o] || node[this.storages.stack[b]] ? 1 : 0));
  }
}

// Index of the last of ascending numbers that is not greater; 0 if all are.
function lastNotAfter(numbers, limit) {
  let low = 0;
  let high = numbers.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (numbers[middle] <= limit) low = middle; else high = middle - 1;
  }
  return low;
}

// The sum of the bytes of some placed things as steps: {moments, levels}, from a moment on.
function sumOver(placed, indices, begin = 0) {
  const change = new Map([[begin, 0]]);
  const add = (moment, bytes) => change.set(moment, (change.get(moment) ?? 0) + bytes);
  for (const i of indices) {
    add(Math.max(begin, placed.from[i]), placed.bytes[i]);
    add(placed.from[i] + placed.lasts[i], -placed.bytes[i]);
  }
  const moments = [...change.keys()].sort((a, b) => a - b);
  let sum = 0;
  return {moments, levels: moments.map((moment) => (sum += change.get(moment)))};
}
