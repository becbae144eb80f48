// Writes each band's name into the curve, at the place where the band has the most room for it.

const CELL = 8;  // pixels: how finely a place is looked for

function nameBands(curve) {
  const {line, g} = curve;
  const cells = Math.floor(curve.width / CELL);
  const upper = curve.colors.map(() => new Float64Array(cells).fill(-Infinity));
  const lower = curve.colors.map(() => new Float64Array(cells).fill(Infinity));
  curve.eachStep((m, x0, x1) => {
    let base = 0;
    curve.steps[m].levels.forEach((bytes, c) => {
      const [top, bottom] = [curve.yOf(base + bytes), curve.yOf(base)];
      base += bytes;
      for (let cell = Math.floor(x0 / CELL); cell <= Math.min(cells - 1, Math.floor(x1 / CELL)); cell += 1) {
        upper[c][cell] = Math.max(upper[c][cell], top);
        lower[c][cell] = Math.min(lower[c][cell], bottom);
      }
    });
  });
  const names = [];
  curve.colors.forEach((_, c) => {
    for (const text of namesOf(line, c)) {
      const wide = g.measureText(text).width;
      const free = (cell, y) => curve.scale.every(({right, at}) => cell * CELL > right || Math.abs(y + 4 - at) > 14);
      const place = roomiest(upper[c], lower[c], Math.ceil((wide + 6) / CELL), 9, free);
      if (place === null) continue;
      const name = {text, left: place.cell * CELL + 3, right: place.cell * CELL + 3 + wide, at: place.y + 4};
      curve.label(text, name.left, name.at);
      names.push(name);
      break;
    }
  });
  curve.canvas.dataset.named = names.length;
  curve.canvas.dataset.names = JSON.stringify(names);
  curve.canvas.dataset.scale = JSON.stringify(curve.scale);
}

// The texts that may stand for a band, the longest first. A name that several bands have needs its category.
function namesOf(line, c) {
  if (c >= line.stacked) return ["all others"];
  const {name, category} = line.owners[c];
  const shared = line.owners.some((other, o) => o !== c && o < line.stacked && other.name === name);
  if (shared) return [line.bandName(c), category];
  return [...new Set([name, name.replace(/^(.+:\d+) .*$/, "$1")])];  // the line without its function
}

// Finds where `wide` adjacent cells leave the most room between an upper and a lower edge, and where free(cell, middle)
// is true. Null: nowhere, or there are less than `least` pixels on both sides of the middle.
function roomiest(upper, lower, wide, least, free) {
  let best = null;
  for (let cell = 0; cell + wide <= upper.length; cell += 1) {
    let [top, bottom] = [-Infinity, Infinity];
    for (let i = cell; i < cell + wide && bottom - top >= 2 * least; i += 1) {
      top = Math.max(top, upper[i]);
      bottom = Math.min(bottom, lower[i]);
    }
    if (bottom - top >= 2 * least && bottom - top < Infinity && !(best && best.room >= bottom - top) &&
        free(cell, (top + bottom) / 2)) {
      best = {cell, room: bottom - top, y: (top + bottom) / 2};
    }
  }
  return best;
}
