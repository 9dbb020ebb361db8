// The page: what is chosen, and what follows from it.
const LEGEND = [
  ['observed', drawing('path', { class: 'seen', d: 'M2 2h9v9h-9z' })],
  ['imputed: the fainter, the less probable', drawing('circle', { class: 'guess', cx: 7, cy: 7, r: 5.5 })],
  ['90 % interval (a short one inside its event)', drawing('path', { class: 'span', d: 'M1 4v6M1 7h12M13 4v6' })],
  ['belief: expected rate', drawing('path', { class: 'belief', d: 'M0 13q7 -22 14 0z' })],
  ['draws, one a line', drawing('path', { class: 'draws', d: 'M3 1v5M9 4v5M12 8v5' })],
];
const TRUTH = ['really missing', drawing('path', { class: 'true', d: 'M7 0l5 7l-5 7l-5 -7z' })];

const WINDOW = ['window in which more goes missing', drawing('path', { class: 'window', d: 'M0 0h14v14h-14z' })];
const FEWEST = (few) => [
  ['effective families: independent guesses', drawing('path', { class: 'fam', d: 'M0 4h5v6h9' })],
  [`fewer than ${few} of them: doubtful`, drawing('path', { class: 'few', d: 'M0 0h14v14h-14z' })],
];

class Page {
  constructor(index) {
    this.index = index;
    this.data = new Data(index);
    this.words = new TimeWords(index.axis);
    this.which = index.first;
    this.stream = null;
    this.highest = false;
    this.list = new StreamList(document.getElementById('list'), index, (i) => this.look(i));
    this.makeDetail();
    this.listen();
  }

  makeDetail() {
    this.name = element('h3', { id: 'stream-name', tabindex: '-1' });
    this.about = element('p', { class: 'muted small' });
    this.why = element('p', { class: 'muted small', id: 'stream-why' });
    this.shaded = element('p', { class: 'muted small', id: 'stream-windows' });
    this.doubts = element('ul', { class: 'warnings small' });
    this.said = element('p', { class: 'hidden', 'aria-live': 'polite', id: 'said' });
    const box = element('div', {
      class: 'timeline', id: 'timeline', tabindex: '0', role: 'application', 'aria-roledescription': 'timeline', 'aria-describedby': 'stream-windows keys',
    });
    const buttons = [['Zoom in', () => this.timeline.zoom(0.5)], ['Zoom out', () => this.timeline.zoom(2)], ['Show all', () => this.timeline.all()]]
      .map(([label, act]) => {
        const button = element('button', { type: 'button' }, label);
        button.addEventListener('click', () => { act(); this.timeline.tell(); });
        return button;
      });
    this.legend = element('ul', { class: 'legend', 'aria-label': 'Marks' });
    this.rows = element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'events as a table' });
    this.belief = element('div', { class: 'scroll', id: 'belief', tabindex: '0', role: 'region', 'aria-label': 'belief as a table' });
    this.table = element('details', { id: 'table' }, element('summary', {}, 'Events and belief as tables'), this.rows, this.belief);
    this.table.addEventListener('toggle', () => this.fillTable());
    const keys = element('p', { class: 'muted small', id: 'keys' },
      'Arrow keys go from event to event, + and − zoom, 0 shows all; Ctrl and the wheel zoom, and dragging moves.');
    document.getElementById('detail').append(
      element('div', { class: 'head' }, element('div', {}, this.name, this.about, this.why), element('div', { class: 'buttons' }, ...buttons)),
      this.doubts, this.legend, box, this.shaded, keys, this.said, this.table);
    this.box = box;
    this.timeline = new Timeline(box, this.said, this.index, this.words);
  }

  listen() {
    const cost = document.getElementById('cost');  // what is scrolled to stands below it, as high as it is
    this.leaveRoom = () => { document.documentElement.style.scrollPaddingTop = `${cost.offsetHeight + 12}px`; };
    new ResizeObserver(this.leaveRoom).observe(cost);
    const on = (id, event, act) => document.getElementById(id).addEventListener(event, act);
    const sort = document.getElementById('sort');
    on('search', 'input', () => this.arrange());
    on('doubtful', 'change', () => this.arrange());
    on('windowed', 'change', () => this.arrange());
    on('sort', 'change', () => { this.highest = ['expected', 'surprise'].includes(sort.value); this.arrange(); });
    on('direction', 'click', () => { this.highest = !this.highest; this.arrange(); });
    on('slider', 'input', (event) => this.decode(Number(event.target.value)));
    on('theme', 'click', () => this.paint(!this.isDark()));
    on('search', 'keydown', (event) => {
      if (event.key !== 'ArrowDown') return;
      event.preventDefault();
      this.list.box.focus();
    });
  }

  begin() {
    const slider = document.getElementById('slider'), { streams, answers } = this.index;
    const touched = streams.windows?.filter((windows) => windows).length;
    if (touched) {
      const only = document.getElementById('windowed').parentElement;
      only.hidden = false;
      only.querySelector('span').textContent = `only ones with a window (${number(touched)})`;
    }
    slider.max = answers.length - 1;
    slider.value = this.which;
    document.getElementById('costs').append(...answers.map((_, n) => element('option', { value: n })));
    const start = streams.start.reduce((a, b) => Math.min(a, b)), end = streams.end.reduce((a, b) => Math.max(a, b));
    document.getElementById('lead').textContent =
      `${count(streams.id.length, 'stream')} from ${this.words.between(start, end)}${this.index.axis.zone ? ` (${this.index.axis.zone})` : ''}`;
    this.paint(this.isDark(), false);
    fillGlossary();
    showWarnings(this.index, (i) => this.goTo(i));
    this.decode(this.which);
    this.arrange();
  }

  // All that is left once the file has been read, and before the browser calls the page loaded: the first stream, which is
  // in a block below the script, and what is below the list.
  end() {
    document.getElementById('trade').replaceChildren(...tradeCharts(this.index, this.words));
    showCheck(this.index.check, this.words);
    showFacts(this.index.facts);
    const named = streamInAddress(this.index), found = document.getElementById('found');
    if (named < 0 ? !this.list.order.length : !this.list.order.includes(named)) this.listAll();  // filters that a browser kept
    this.list.choose(named < 0 ? this.list.worthLooking() : this.list.order.indexOf(named));
    found.prepend(unknownAddress(this.index));
    if (named >= 0) this.show('instant');
    addEventListener('hashchange', () => {
      const i = streamInAddress(this.index);
      if (i >= 0) this.goTo(i);
    });
    document.documentElement.dataset.ready = 'yes';
  }

  arrange() {
    const value = (id) => document.getElementById(id).value, column = value('sort');
    const [doubtful, windowed] = ['doubtful', 'windowed'].map((id) => document.getElementById(id).checked), { streams } = this.index;
    const found = this.list.arrange(value('search'), column, this.highest,
      (i) => (!doubtful || streams.doubts[i]) && (!windowed || streams.windows[i]));
    document.getElementById('found').textContent = `${count(found, 'stream')} of ${number(streams.id.length)}`;
    this.list.box.hidden = !found;
    this.sayNothing(found, value('search').trim(), doubtful, windowed);
    const words = column === 'id' || column === 'given' ? ['In order', 'Reversed'] : ['Lowest first', 'Highest first'];
    document.getElementById('direction').textContent = words[Number(this.highest)];
  }

  // In place of a list without a stream: that there is none, and the way back to all.
  sayNothing(found, text, doubtful, windowed) {
    const box = document.getElementById('nothing'), all = element('button', { type: 'button' }, 'Show all streams');
    const which = windowed ? 'stream with a window' : 'stream';
    all.addEventListener('click', () => { this.listAll(); this.list.box.focus(); });
    box.hidden = found > 0;
    box.replaceChildren(...(found ? [] : [text ? `No ${doubtful ? 'doubtful ' : ''}${which} has “${text}” in its name.` : `No ${which} is doubtful.`, all]));
  }

  listAll() {
    document.getElementById('search').value = '';
    for (const id of ['doubtful', 'windowed']) document.getElementById(id).checked = false;
    this.arrange();
  }

  // Choose a stream that is named elsewhere, and go there; all are listed where it was filtered out.
  goTo(i) {
    if (!this.list.order.includes(i)) this.listAll();
    this.list.choose(this.list.order.indexOf(i));
    this.show();
  }

  // The stream that is looked at, below the slider.
  show(behavior = 'auto') {
    this.leaveRoom();
    this.name.focus({ preventScroll: true });
    document.getElementById('detail').scrollIntoView({ behavior });
  }

  decode(which) {
    this.which = which;
    const answer = this.index.answers[which];
    showCost(this.index, which, this.words);
    showTiles(this.index, answer);
    showTypes(this.index, answer);
    showScore(this.index, answer, this.words);
    this.list.tell(answer.events);
    this.redraw();
  }

  look(i) {
    const isFirst = !this.stream;
    this.stream = this.data.stream(i);
    this.redraw();
    if (!isFirst) nameInAddress(this.index.streams.id[i]);
  }

  redraw() {
    if (!this.stream) return;
    const { stream, index, words } = this, i = stream.number, answer = stream.answers[this.which];
    const { id, expected, surprise, families, doubts } = index.streams, chosen = index.answers[this.which];
    this.name.textContent = `Stream ${id[i]}`;
    const surprising = surprise[i] === null ? 'no probability' : `surprise ${brief(surprise[i])} an event`;
    this.about.textContent = `${words.between(stream.start, stream.end, stream.step)} · ${count(stream.observed.length, 'observed event')} · `
      + `${expectedNumber(expected[i])} expected missing · ${number(answer.length)} imputed at this cost · ${surprising} · ${brief(families[i])} effective families · `
      + `expected distance to the truth ${words.amount(chosen.risk[i])} (predicting nothing: ${number(chosen.nothing[i])})${streamScore(chosen, i, words)}`;
    this.why.textContent = whyDifferent(expected[i], answer.length);
    this.doubts.replaceChildren(...index.doubts.filter((_, bit) => doubts[i] >> bit & 1).map((doubt) => element('li', {}, doubt.text)));
    const marks = [...LEGEND, ...(stream.truth ? [TRUTH] : []), ...(stream.windows.length ? [WINDOW] : []), ...FEWEST(index.few)];
    this.shaded.textContent = windowWords(stream, index, words);
    this.legend.replaceChildren(...marks.map(([name, mark]) =>
      element('li', {}, drawing('svg', { width: 14, height: 14, 'aria-hidden': 'true' }, mark.cloneNode()), name)));
    this.box.setAttribute('aria-label',
      `Timeline of stream ${id[i]}: ${count(stream.observed.length, 'observed event')}, ${count(answer.length, 'imputed event')}`);
    this.timeline.show(stream, answer);
    this.fillTable();
  }

  fillTable() {
    if (this.table.open && this.stream) {
      this.rows.replaceChildren(...eventTable(this.stream, this.stream.answers[this.which], this.index, this.words));
      this.belief.replaceChildren(beliefTable(this.stream, this.index, this.words));
    }
  }

  isDark() {
    const chosen = document.documentElement.dataset.theme ?? stored();
    return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }

  paint(dark, keep = true) {
    if (keep || stored()) document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    document.getElementById('theme').textContent = dark ? 'Light colours' : 'Dark colours';
    try { if (keep) localStorage.setItem('retrodict-theme', dark ? 'dark' : 'light'); } catch { /* a browser may keep nothing */ }
  }
}

function stored() {
  try { return localStorage.getItem('retrodict-theme'); } catch { return null; }
}

function shown(act) {
  try { return act(); } catch (error) {
    document.getElementById('lead').textContent = `The page is damaged and cannot be shown (${error.message}).`;
    return null;
  }
}

const page = shown(() => {
  const made = new Page(unpack('index'));
  made.begin();
  return made;
});
if (page) document.addEventListener('DOMContentLoaded', () => shown(() => page.end()));
