// What a person marked in a history, for all that draws it: the storage that was chosen, and what a search found.

class Marked {
  constructor(line) {
    this.line = line;
    this.chosen = -1;        // a storage
    this.found = null;       // a byte for each storage; null: nothing is searched for
    this.foundSums = null;   // {moments, levels}
    this.bands = null;       // a column has something that was found
    this.listeners = [];     // called after each change
  }

  choose(storage) {
    this.chosen = storage;
    this.changed();
  }

  search(text) {
    const {line} = this;
    this.found = text ? line.matching(text) : null;
    if (text) {
      const hits = this.hits();
      this.foundSums = sumOver(line.storages, hits);
      this.bands = line.levels.map(() => false);
      for (const b of hits) this.bands[line.columnOf(b)] = true;
    }
    this.changed();
  }

  hits() { return Array.from(this.found.keys()).filter((b) => this.found[b]); }
  hasFound(column) { return this.found === null || this.bands[column]; }
  changed() { for (const listener of this.listeners) listener(); }
}
