// The list of streams: as many elements as fit on the screen, however many streams there are.
const ROW = 56;

class StreamList {
  constructor(box, index, pick) {
    Object.assign(this, { box, index, pick, order: [], active: 0, chosen: -1, shown: new Map() });
    this.space = element('div', { role: 'presentation' });
    box.append(this.space);
    box.addEventListener('scroll', () => this.draw());
    box.addEventListener('keydown', (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(box);
  }

  // Streams whose name holds ``text``, doubtful ones alone if asked, by a column.
  arrange(text, column, highest, doubtful) {
    const { id, doubts } = this.index.streams, wanted = text.trim().toLowerCase();
    const names = this.names ??= id.map((name) => name.toLowerCase());
    const order = id.map((_, i) => i).filter((i) => names[i].includes(wanted) && (!doubtful || doubts[i]));
    const sign = highest ? -1 : 1, values = this.index.streams[column];
    if (column === 'given') { if (highest) order.reverse(); } else if (column === 'id') {
      const collator = new Intl.Collator('en', { numeric: true });
      order.sort((a, b) => sign * collator.compare(id[a], id[b]) || a - b);
    } else {
      const value = (i) => values[i] ?? Infinity;  // no probability at all is the greatest surprise
      order.sort((a, b) => sign * (value(a) - value(b) || 0) || a - b);
    }
    this.order = order;
    this.active = Math.max(0, order.indexOf(this.chosen));
    this.space.style.height = `${order.length * ROW}px`;
    this.clear();
    this.box.scrollTop = 0;
    this.draw();
    this.markActive();
    return order.length;
  }

  clear() {
    for (const row of this.shown.values()) row.remove();
    this.shown.clear();
  }

  draw() {
    const top = this.box.scrollTop, high = this.box.clientHeight || 600;
    const first = Math.max(0, Math.floor(top / ROW) - 4);
    const last = Math.min(this.order.length, Math.ceil((top + high) / ROW) + 4);
    for (const [place, row] of this.shown) {
      if ((place < first || place >= last) && place !== this.active) { row.remove(); this.shown.delete(place); }
    }
    for (let place = first; place < last; place++) this.put(place);
  }

  put(place) {
    if (this.shown.has(place) || place >= this.order.length) return;
    const i = this.order[place], { id, expected, surprise, families, doubts } = this.index.streams;
    const marks = this.index.doubts.filter((_, bit) => doubts[i] >> bit & 1).map((doubt) => doubt.name);
    const row = element('div', {
      class: 'row', role: 'option', id: `row-${place}`, 'aria-selected': i === this.chosen ? 'true' : 'false',
      'aria-posinset': place + 1, 'aria-setsize': this.order.length, style: `top:${place * ROW}px`, title: id[i],
    });
    const surprising = surprise[i] === null ? 'impossible' : `surprise ${brief(surprise[i])}`;
    row.append(
      element('b', {}, id[i] === '' ? '(no name)' : id[i], marks.length ? element('em', {}, `  ⚠ ${marks.join(', ')}`) : null),
      element('span', {}, `${expectedNumber(expected[i])} missing · ${surprising} · ${brief(families[i])} families`),
    );
    row.addEventListener('click', () => this.choose(place));
    this.shown.set(place, row);
    this.box.append(row);
  }

  // The first stream of the list in which events are imputed; failing that the one with most expected to be missing.
  worthLooking(imputed) {
    const { expected } = this.index.streams, first = this.order.findIndex((i) => imputed[i]);
    return first >= 0 ? first : this.order.reduce((best, i, place) => (expected[i] > expected[this.order[best]] ? place : best), 0);
  }

  choose(place) {
    this.active = place;
    this.chosen = this.order[place];
    for (const [other, row] of this.shown) row.setAttribute('aria-selected', String(other === place));
    this.reveal();
    return this.pick(this.chosen);
  }

  reveal() {
    const top = this.active * ROW, box = this.box;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
    this.draw();
    this.markActive();
  }

  markActive() {
    this.put(this.active);
    if (this.order.length) this.box.setAttribute('aria-activedescendant', `row-${this.active}`);
    else this.box.removeAttribute('aria-activedescendant');
  }

  press(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1), last = this.order.length - 1;
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || last < 0) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(this.active + steps[event.key], 0), last));
  }
}
