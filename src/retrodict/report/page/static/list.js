// The list of streams: as many elements as fit on the screen, however many streams there are.
const ROW = 56;
const MEASURES = { surprising: 'surprise', 'few guesses': 'families' };  // what a stream is doubted for

class StreamList {
  constructor(box, index, pick) {
    Object.assign(this, { box, index, pick, order: [], active: 0, chosen: -1, imputed: [], column: 'given', shown: new Map() });
    this.space = element('div', { role: 'presentation' });
    box.append(this.space);
    box.addEventListener('scroll', () => this.draw());
    box.addEventListener('keydown', (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(box);
  }

  // Streams whose name holds ``text``, of those to be kept, by a column.
  arrange(text, column, highest, keep) {
    const { id } = this.index.streams, wanted = text.trim().toLowerCase();
    const names = this.names ??= id.map((name) => name.toLowerCase());
    const order = id.map((_, i) => i).filter((i) => names[i].includes(wanted) && keep(i));
    const sign = highest ? -1 : 1, values = this.index.streams[column];
    if (column === 'given') { if (highest) order.reverse(); } else if (column === 'id') {
      const collator = new Intl.Collator('en', { numeric: true });
      order.sort((a, b) => sign * collator.compare(id[a], id[b]) || a - b);
    } else {
      const value = (i) => values[i] ?? Infinity;  // no probability at all is the greatest surprise
      order.sort((a, b) => sign * (value(a) - value(b) || 0) || a - b);
    }
    Object.assign(this, { order, column });
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
    const i = this.order[place], { id } = this.index.streams, marks = this.marks(i);
    const row = element('div', {
      class: 'row', role: 'option', id: `row-${place}`, 'aria-selected': i === this.chosen ? 'true' : 'false',
      'aria-posinset': place + 1, 'aria-setsize': this.order.length, style: `top:${place * ROW}px`, title: id[i],
    });
    row.append(
      element('b', {}, id[i] === '' ? '(no name)' : id[i], marks.length ? element('em', {}, `  ⚠ ${marks.join(', ')}`) : null),
      element('span', {}, this.about(i)),
    );
    row.addEventListener('click', () => this.choose(place));
    this.shown.set(place, row);
    this.box.append(row);
  }

  marks(i) {
    return this.index.doubts.filter((_, bit) => this.index.streams.doubts[i] >> bit & 1).map((doubt) => doubt.name);
  }

  // What a row says of a stream: a measure only where the list is sorted by it, or the stream doubted for it.
  about(i) {
    const { expected, surprise, families } = this.index.streams, doubted = this.marks(i).map((mark) => MEASURES[mark]);
    const measures = Object.entries({
      surprise: surprise[i] === null ? 'impossible' : `surprise ${brief(surprise[i])}`, families: `${brief(families[i])} families`,
    }).filter(([name]) => name === this.column || doubted.includes(name)).map(([, words]) => words);
    return [`${expectedNumber(expected[i])} expected missing`, `${number(this.imputed[i])} imputed`, ...measures].join(' · ');
  }

  // Rows tell how many events another answer has.
  tell(imputed) {
    this.imputed = imputed;
    for (const [place, row] of this.shown) row.querySelector('span').textContent = this.about(this.order[place]);
  }

  // The stream to begin with has most events expected to be missing, of those that a window touches and in which events
  // are imputed; failing that, of those that a window touches, and then of those in which events are imputed.
  worthLooking() {
    const { expected, windows } = this.index.streams, touched = (i) => windows?.[i] && expected[i] >= 0.5;
    const made = (i) => this.imputed[i];
    const some = [(i) => touched(i) && made(i), touched, made, () => true].map((is) => this.order.filter(is)).find((each) => each.length);
    return this.order.indexOf(some.reduce((best, i) => (expected[i] > expected[best] ? i : best)));
  }

  choose(place) {
    this.active = place;
    this.chosen = this.order[place];
    for (const [other, row] of this.shown) row.setAttribute('aria-selected', String(other === place));
    this.reveal();
    return this.pick(this.chosen);
  }

  reveal() {
    const top = this.active * ROW, box = this.box, below = top + ROW - box.scrollTop - box.clientHeight;
    if (Math.max(box.scrollTop - top, below) > 2 * ROW) box.scrollTop = top - (box.clientHeight - ROW) / 2;  // one far away
    else if (top < box.scrollTop) box.scrollTop = top;
    else if (below > 0) box.scrollTop = top + ROW - box.clientHeight;
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
