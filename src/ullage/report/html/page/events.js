// Lists what happened around a moment, event by event.

const AROUND = 12;  // events before and after

class Events {
  // onGo(state, storage, below) is called when a person chooses one.
  constructor(line, onGo) {
    this.line = line;
    this.onGo = onGo;
    this.rows = element("tbody");
    this.scroll = element("div", {class: "scroll"}, element("table", {class: "events"}, head("event", "bytes", "what"), this.rows));
    const roomy = matchMedia("(min-width: 64rem)").matches;  // on a phone the segments would stand far below
    this.root = element("details", roomy ? {open: ""} : {}, element("summary", {}, "events around this moment"), this.scroll);
  }

  show(state) {
    const {line} = this;
    const around = line.changes(state.moment - AROUND, state.moment + AROUND);
    this.rows.replaceChildren(...around.map(({moment, bytes, what, storage}) => {
      const sign = what.startsWith("out") ? "" : bytes < 0 ? "\u2212" : "+";
      const go = element("button", {type: "button", class: "link"}, String(moment - 1));
      go.addEventListener("click", () => this.onGo(line.state(moment), storage, this.scroll));
      const owner = storage >= 0 ? [dot(line.storageColor(storage)), line.ownerName(line.storages.owner[storage])] : [];
      return element("tr", {class: moment === state.moment ? "on" : what.startsWith("out") ? "bad" : ""},
        element("td", {class: "number"}, go), element("td", {class: "number"}, `${sign}${sizeText(Math.abs(bytes))}`),
        element("td", {}, `${what} `, element("span", {class: "code"}, ...owner)));
    }));
    this.root.hidden = around.length === 0;
    this.root.dataset.events = around.length;
  }
}
