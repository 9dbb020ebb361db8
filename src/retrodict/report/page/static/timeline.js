// A timeline that can be zoomed, hovered over and walked through by keyboard.
class Timeline {
  constructor(box, said, index, words) {
    Object.assign(this, { box, said, index, words, stream: null, answer: [], at: null });
    this.tip = element('div', { class: 'tip', hidden: true });
    this.picture = drawing('svg', { 'aria-hidden': 'true', focusable: 'false' });
    box.append(this.picture, this.tip);
    box.addEventListener('pointermove', (event) => this.hover(event));
    box.addEventListener('pointerleave', () => this.point(null));
    box.addEventListener('click', (event) => this.hover(event));  // a tap: its pointer does not move, and has left
    box.addEventListener('pointerdown', (event) => this.grab(event));
    box.addEventListener('dblclick', (event) => this.zoom(0.4, this.time(event)));
    box.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;  // a wheel alone scrolls the page
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event));
    }, { passive: false });
    box.addEventListener('keydown', (event) => this.press(event));
    box.addEventListener('blur', () => this.point(null));
    new ResizeObserver(() => { if (box.clientWidth !== this.width) this.draw(); }).observe(box);
  }

  show(stream, answer) {
    const isOther = !this.stream || this.stream.number !== stream.number;
    this.stream = stream;
    this.answer = answer;
    this.events = [...stream.observed, ...answer, ...(stream.truth || [])].sort((a, b) => a.t - b.t);
    if (isOther) [this.from, this.to] = [stream.start, stream.end];
    this.draw();
  }

  get room() { return this.width - 2 * SIDE; }

  x(t) { return SIDE + (this.to > this.from ? (t - this.from) / (this.to - this.from) : 0.5) * this.room; }

  time(event) {
    const share = (event.clientX - this.box.getBoundingClientRect().left - SIDE) / this.room;
    return this.from + Math.min(Math.max(share, 0), 1) * (this.to - this.from);
  }

  draw() {
    if (!this.stream || !this.box.clientWidth) return;
    this.width = this.box.clientWidth;
    const { stream, answer, width } = this, x = (t) => this.x(t);
    this.lay = layRows(stream, answer, this.index.types);
    const { rows, bottom, height } = this.lay, floor = bottom + FAMILIES + 6;
    this.picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.picture.setAttribute('height', height);
    this.picture.replaceChildren(
      drawAxis(this.words.ticks(this.from, this.to, Math.max(2, Math.floor(width / 110))), floor, x, width),
      ...rows.map((row) => drawRow(row, stream, answer, x, width)),
      drawFamilies(stream, this.index.few, bottom, x, width),
    );
    this.box.classList.toggle('zoomed', this.from > stream.start || this.to < stream.end);
    this.point(null);
  }

  // Zoom about a time, which stays where it is; never beyond the stream, nor finer than it is stored.
  zoom(factor, about = (this.from + this.to) / 2) {
    const { start, end, step } = this.stream, span = end - start;
    if (!(span > 0)) return;
    const next = Math.min(span, Math.max((this.to - this.from) * factor, Math.min(span, 20 * step)));
    this.move(about - (about - this.from) * next / (this.to - this.from), next);
  }

  move(from, span = this.to - this.from) {
    const { start, end } = this.stream;
    this.from = Math.min(Math.max(from, start), end - span);
    this.to = Math.min(this.from + span, end);
    this.draw();
  }

  all() { this.move(this.stream.start, this.stream.end - this.stream.start); }

  grab(event) {
    if (event.button !== 0 || !this.box.classList.contains('zoomed')) return;
    const begin = this.from, x = event.clientX;
    const drag = (moved) => this.move(begin - (moved.clientX - x) / this.room * (this.to - this.from));
    const drop = () => {
      window.removeEventListener('pointermove', drag);
      for (const end of ['pointerup', 'pointercancel']) window.removeEventListener(end, drop);
    };
    window.addEventListener('pointermove', drag);
    for (const end of ['pointerup', 'pointercancel']) window.addEventListener(end, drop);
  }

  // The event nearest to the pointer, in the row that it is over.
  hover(event) {
    const frame = this.box.getBoundingClientRect(), px = event.clientX - frame.left, py = event.clientY - frame.top;
    const row = this.lay && this.lay.rows.find((each) => py >= each.top && py <= each.line + MARK + DRAWS / 2);
    let best = null, least = event.pointerType === 'touch' ? 24 : 14;
    for (const one of row ? this.events : []) {
      const far = Math.abs(this.x(one.t) - px);
      if (one.k === row.k && far <= least) [best, least] = [one, far];
    }
    this.point(best);
  }

  // Point at an event: a ring around it, and what it is.
  point(event) {
    this.at = event;
    this.ring?.remove();
    this.tip.hidden = event === null;
    if (event === null) return;
    const row = this.lay.rows.find((each) => each.k === event.k), x = this.x(event.t);
    this.ring = drawing('circle', { class: 'cursor', cx: x, cy: row.line, r: 10 });
    this.picture.append(this.ring);
    this.tip.textContent = this.describe(event);
    const wide = Math.min(304, this.width);
    this.tip.style.left = `${Math.max(0, Math.min(x - wide / 2, this.width - wide))}px`;
    this.tip.style.top = `${row.line + 16}px`;
  }

  describe(event) {
    const { step } = this.stream, when = this.words.full(event.t, step), name = this.index.types[event.k];
    if (event.kind !== 'imputed') return `${name}, ${event.kind === 'truth' ? 'really missing' : 'observed'}: ${when}`;
    const interval = `90 % interval ${this.words.between(event.from, event.to, step)}`;
    return `${name}, imputed: ${when}, probability ${event.p.toFixed(2)}, ${interval}`;
  }

  press(event) {
    if (!this.stream || event.ctrlKey || event.metaKey || event.altKey) return;
    const width = this.to - this.from, sign = event.key === 'ArrowLeft' ? -1 : 1;
    const keys = {
      '+': () => this.zoom(0.5, this.at?.t), '=': () => this.zoom(0.5, this.at?.t), '-': () => this.zoom(2, this.at?.t),
      0: () => this.all(), Escape: () => this.point(null),
      ArrowLeft: () => (event.shiftKey ? this.move(this.from - width / 4) : this.walk(sign)),
      ArrowRight: () => (event.shiftKey ? this.move(this.from + width / 4) : this.walk(sign)),
      Home: () => this.walk(-Infinity), End: () => this.walk(Infinity),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    if (['+', '=', '-', '0'].includes(event.key)) this.tell();
  }

  walk(steps) {
    if (!this.events.length) { this.said.textContent = 'No events.'; return; }
    const now = this.events.indexOf(this.at), last = this.events.length - 1;
    const next = now < 0 && Number.isFinite(steps) ? (steps > 0 ? 0 : last) : Math.min(Math.max(now + steps, 0), last);
    const event = this.events[next];
    if (event.t < this.from || event.t > this.to) this.move(event.t - (this.to - this.from) / 2);
    this.point(event);
    this.said.textContent = `${next + 1} of ${last + 1}: ${this.describe(event)}`;
  }

  tell() {
    this.said.textContent = `Showing ${this.words.between(this.from, this.to, this.stream.step)}.`;
  }
}
