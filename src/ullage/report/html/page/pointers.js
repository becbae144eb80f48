// Mouse and fingers on a Curve. Mouse: move reads, drag chooses a stretch to zoom into, Shift and drag moves the view,
// click picks. Fingers: one reads, a tap picks, two pinch and move.

class Pointers {
  constructor(curve) {
    this.curve = curve;
    this.down = new Map();  // pointer id -> x where it is now
    this.began = null;      // {x, view, moved}
    const canvas = curve.canvas;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.lift(event));
    canvas.addEventListener("pointercancel", (event) => this.forget(event));
    canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse" && this.down.size === 0) curve.leave();
    });
    canvas.addEventListener("dblclick", () => curve.reset());
  }

  press(event) {
    if (event.button > 0) return;
    this.down.set(event.pointerId, event.offsetX);
    // A pointer that went away meanwhile cannot be kept; its moves come as they do.
    try { this.curve.canvas.setPointerCapture(event.pointerId); } catch { /* gone */ }
    this.began = {x: event.offsetX, view: [...this.curve.view], moved: false, spread: this.spread(), xs: this.middle()};
  }

  xs() { return [...this.down.values()]; }
  spread() { return this.down.size > 1 ? Math.abs(this.xs()[0] - this.xs()[1]) : 0; }
  middle() { return this.xs().reduce((sum, x) => sum + x, 0) / Math.max(1, this.down.size); }

  move(event) {
    const {curve, began} = this;
    if (!this.down.has(event.pointerId)) {
      if (event.pointerType === "mouse") curve.point(event.offsetX, event.offsetY);
      return;
    }
    this.down.set(event.pointerId, event.offsetX);
    if (Math.abs(event.offsetX - began.x) > 4) began.moved = true;
    if (this.down.size > 1) {
      this.pinch();
    } else if (event.pointerType === "mouse" && began.moved && event.shiftKey) {
      const perPixel = (began.view[1] - began.view[0]) / curve.width;
      const by = (began.x - event.offsetX) * perPixel;
      curve.setView(began.view[0] + by, began.view[1] + by);
    } else if (event.pointerType === "mouse" && began.moved) {
      curve.selection = [began.x, event.offsetX];
      curve.draw();
    } else {
      curve.point(event.offsetX, event.offsetY);
    }
  }

  pinch() {
    const {curve, began} = this;
    began.moved = true;
    const spread = this.spread();
    if (began.spread < 10 || spread < 10) return;
    const span = (began.view[1] - began.view[0]) * began.spread / spread;
    const under = began.view[0] + began.xs / curve.width * (began.view[1] - began.view[0]);
    const from = under - this.middle() / curve.width * span;
    curve.setView(from, from + span);
  }

  lift(event) {
    const {curve, began} = this;
    if (!this.down.has(event.pointerId)) return;
    const alone = this.down.size === 1;
    this.down.delete(event.pointerId);
    if (!alone) return;
    if (curve.selection) {
      const [a, b] = curve.selection.map((x) => curve.momentOf(x)).sort((p, q) => p - q);
      curve.selection = null;
      curve.setView(a, b);
    } else if (!began.moved) {
      curve.point(event.offsetX, event.offsetY);
      curve.pick(curve.hover, curve.storage, curve.band);
    }
  }

  forget(event) {
    this.down.delete(event.pointerId);
    this.curve.selection = null;
    this.curve.draw();
  }
}
