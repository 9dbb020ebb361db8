// Tables: of any rows, and of the events of a stream, which say all that its timeline shows.
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
