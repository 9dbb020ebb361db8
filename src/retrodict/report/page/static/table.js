// Tables: of any rows, of the events of a stream, and of what is believed of it.
function makeTable(heads, rows, caption, texts = 1) {
  const table = element('table');
  table.append(element('caption', { class: 'hidden' }, caption));
  table.append(element('thead', {}, element('tr', {}, ...heads.map((head, n) =>
    element('th', { scope: 'col', class: n < texts ? 'text' : null }, head)))));
  const body = element('tbody');
  for (const row of rows) {
    body.append(element('tr', {}, ...row.map((cell, n) => (cell instanceof Element && cell.tagName === 'TD' ? cell
      : element(n ? 'td' : 'th', { scope: n ? null : 'row', class: n < texts ? 'text' : null }, cell)))));
  }
  table.append(body);
  return table;
}

const MOST_ROWS = 500;

function eventTable(stream, answer, index, words, most = MOST_ROWS) {
  const events = [...stream.observed, ...answer, ...(stream.truth || [])].sort((a, b) => a.t - b.t);
  const kinds = { observed: 'observed', imputed: 'imputed', truth: 'really missing' };
  const rows = events.slice(0, most).map((event) => [
    words.full(event.t, stream.step), index.types[event.k], kinds[event.kind],
    event.kind === 'imputed' ? event.p.toFixed(2) : '',
    event.kind === 'imputed' ? words.between(event.from, event.to, stream.step) : '',
  ]);
  const table = makeTable(['time', 'type', 'what', 'probability', '90 % interval'], rows, `Events of stream ${index.streams.id[stream.number]}`, 3);
  table.className = 'events';
  if (events.length <= most) return [table];
  const more = element('button', { type: 'button' }, `Show all ${count(events.length, 'event')}`);
  more.addEventListener('click', () => {
    const box = more.parentElement;
    box.replaceChildren(...eventTable(stream, answer, index, words, Infinity));
    box.focus();
  });
  return [table, more];
}

const STRETCHES = 10;

// What the filled curves and the line of families say, in equal stretches of the stream: heights are roots of rates.
function beliefTable(stream, index, words) {
  const types = Object.keys(stream.rates).map(Number), edges = [stream.start, ...stream.observed.map((event) => event.t), stream.end];
  const mass = (k, from = 0, to = Infinity) => stream.rates[k].slice(from, to).reduce((sum, height) => sum + height * height, 0);
  const rows = Array.from({ length: STRETCHES }, (_, n) => {
    const [from, to] = [n, n + 1].map((part) => stream.start + (stream.end - stream.start) * part / STRETCHES);
    const expected = types.map((k) => {
      const cells = stream.rates[k].length / STRETCHES;
      return expectedNumber((stream.expected[k] ?? 0) * (share(mass(k, n * cells, (n + 1) * cells), mass(k)) ?? 0));
    });
    const families = stream.families.filter((each, m) => each !== null && edges[m] < to && edges[m + 1] > from);
    return [words.between(from, to, stream.step), ...expected, brief(families.length ? Math.min(...families) : null)];
  });
  const heads = ['from and to', ...types.map((k) => `${index.types[k]} expected missing`), 'fewest families'];
  return makeTable(heads, rows, `What is believed to be missing from stream ${index.streams.id[stream.number]}`);
}
