// Says in words what was asked about a storage, an owner or a segment: its size, its time and its whole stack. There is
// one such text; it stands below what was asked about.

class Detail {
  constructor(line, marked) {
    this.line = line;
    this.marked = marked;
    this.root = element("div", {class: "detail", "aria-live": "polite", hidden: ""});
  }

  hide() { this.root.hidden = true; }

  // Shows the parts below an element.
  say(below, ...parts) {
    this.root.hidden = false;
    this.root.replaceChildren(...parts);
    below.after(this.root);
  }

  storage(below, b, ...before) {
    const {storages} = this.line;
    const place = this.line.pool ? `, at ${this.line.addressText(storages.at[b])}` : "";
    this.marked.choose(b);
    this.say(below, ...before, element("div", {}, element("b", {}, `tensor of ${sizeText(storages.bytes[b])}`),
      `: ${this.line.ownerName(storages.owner[b])}, ${this.line.lifeText(b)}${place}`),
      this.stack(storages.stack[b]));
  }

  owner(below, index, state) {
    const {line} = this;
    this.marked.choose(-1);
    if (index < 0) return this.say(below, element("div", {}, "These have no band of their own: zoom in or search for them."));
    const now = line.presentAt(line.storages, state.moment).filter((b) => line.storages.owner[b] === index);
    const bytes = now.reduce((sum, b) => sum + line.storages.bytes[b], 0);
    this.say(below, element("div", {}, element("b", {}, line.ownerName(index)),
      `: ${sizeText(bytes)} in ${countText(now.length, "tensor")} at ${line.momentText(state)}; the stack of its largest tensor`),
      this.stack(line.owners[index].stack));
  }

  // Shows the program's own frames first, because those of C++ are often sixty; these are folded beside them.
  stack(node) {
    const frames = this.line.framesOf(node);
    if (frames.length === 0) return element("div", {class: "hint"}, "no stack was recorded");
    const list = (some) => element("ol", {class: "frames"}, ...some.map((frame) => element("li", {}, frame)));
    const python = frames.filter((frame) => !isNative(frame));
    if (python.length === 0 || python.length === frames.length) return list(frames);
    return element("div", {}, list(python), element("details", {}, element("summary", {},
      `the whole stack: ${frames.length} frames, with those of C++`), list(frames)));
  }
}

// A C++ frame has no line, or one in a C++ file.
function isNative(frame) {
  const place = /^(.+):\d+ /.exec(frame);
  return place === null || /\.(c|cc|cpp|cxx|h|hpp|cu|cuh|inl)$/.test(place[1]);
}
