// Searches for storages that have a text in their owner's name or in their stack. Draws their bytes over time; all else
// pales.

const HITS = 12;  // tensors that are listed

class Search {
  constructor(line, marked, onGo) {
    Object.assign(this, {line, marked, onGo});
    this.field = element("input", {type: "search", placeholder: "search files, functions", "aria-label":
      "search owners and stacks"});
    this.title = element("p");
    this.rows = element("tbody");
    this.scroll = element("div", {class: "scroll"}, element("table", {}, head("bytes", "owner", "when"), this.rows));
    this.root = element("div", {class: "found", hidden: "", "aria-live": "polite"}, this.title, this.scroll);
    this.field.addEventListener("input", () => {
      clearTimeout(this.waits);
      this.waits = setTimeout(() => this.search(), 150);
    });
  }

  search() {
    const {line, marked} = this;
    const text = this.field.value.trim();
    marked.search(text);
    this.root.hidden = !text;
    if (!text) return;
    const hits = marked.hits();
    const {moments, levels} = marked.foundSums;
    const most = levels.reduce((best, level, i) => (level > levels[best] ? i : best), 0);
    const go = element("button", {type: "button", class: "link"}, line.momentText(line.state(moments[most])));
    go.addEventListener("click", () => this.onGo(line.state(moments[most]), -1, this.scroll));
    this.title.replaceChildren(`${countText(hits.length, "tensor")}, at most ${sizeText(levels[most])} at once`,
      ...(hits.length ? [", at ", go, "; the red line is their bytes"] : []),
      line.leftOut ? `; ${line.leftOut} small ones are not on this page` : "");
    this.root.dataset.hits = hits.length;
    this.root.dataset.most = levels[most];
    hits.sort((a, b) => line.storages.bytes[b] - line.storages.bytes[a]);
    this.rows.replaceChildren(...hits.slice(0, HITS).map((b) => {
      const owner = element("button", {type: "button", class: "link"}, dot(line.storageColor(b)),
        line.ownerName(line.storages.owner[b]));
      owner.addEventListener("click", () => this.onGo(line.state(line.storages.from[b]), b, this.scroll));
      return element("tr", {}, element("td", {class: "number"}, sizeText(line.storages.bytes[b])),
        element("td", {class: "code"}, owner), element("td", {}, line.lifeText(b)));
    }));
  }
}
