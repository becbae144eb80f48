// What the program wrote into the page, made usable: columns of differences become columns of numbers.
// A moment m is the state after event m - 1; moment 0 is before the first event.

// Hues of page.css, by the names of trace::Category.
const HUES = {
  "parameters": 217, "gradients": 26, "optimizer state": 265, "activations": 150, "inputs": 187, "temporaries": 45,
  "library workspaces": 330, "buffers": 303, "workspace": 88, "weight copies": 205,
};

// One color a band: the hue tells the category, the lightness tells its owners apart.
function ownerColors(owners, dark) {
  const steps = dark ? [56, 44, 66, 38, 72, 50, 61, 34] : [46, 60, 36, 70, 52, 30, 65, 41];
  const seen = {};
  return owners.map(({category}) => {
    const nth = seen[category] = (seen[category] ?? -1) + 1;
    const light = steps[nth % steps.length];
    return category in HUES ? `hsl(${HUES[category]} 58% ${light}%)` : `hsl(220 8% ${light}%)`;
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
  }

  // Index of the last sample that is not after the moment.
  sampleAt(moment) {
    let low = 0;
    let high = this.moments.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.moments[middle] <= moment) low = middle; else high = middle - 1;
    }
    return low;
  }

  bandName(column) { return column < this.stacked ? this.ownerName(column) : "all others"; }

  // Two owners may have one name and differ in the category.
  ownerName(index) {
    return index < 0 ? "another owner" : `${this.owners[index].category}: ${this.owners[index].name}`;
  }

  momentText(sample) {
    const moment = this.moments[sample];
    if (this.events === 0) return "the end, when the file was written";
    const time = this.times.length ? `, ${timeText(this.times[sample])}` : "";
    return moment === 0 ? "before the first event" : `event ${moment - 1}${time}`;
  }

  // The op that ran at a sample, of Ullage's own traces; empty: none, or not recorded.
  opText(sample) { return this.ops[this.opAt[sample]] ?? ""; }

  // "1.00 GiB live, 2.00 GiB reserved"; a trace knows no reserved bytes.
  levelText(sample) {
    const live = `${sizeText(this.live[sample])} live`;
    return this.pool ? `${live}, ${sizeText(this.reserved[sample])} reserved` : live;
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
}
