// What can be said of all streams together: numbers, warnings, types, the check, and how it was made.
function total(values) {
  return values.reduce((sum, value) => sum + (value ?? 0), 0);
}

function showTiles(index, answer) {
  const { observed, expected, doubts } = index.streams;
  const tiles = [
    ['streams', observed.length], ['observed events', total(observed)], ['expected missing', expectedNumber(total(expected)), `90 %: ${numberInterval(index.interval)}`],
    ['imputed at this cost', total(answer.events)], ['doubtful streams', doubts.filter((mark) => mark).length],
  ];
  document.getElementById('tiles').replaceChildren(...tiles.map(([name, value, more]) =>
    element('div', {}, element('dt', {}, name), element('dd', {}, typeof value === 'string' ? value : number(value)),
      ...(more ? [element('dd', { class: 'small muted' }, more)] : []))));
}

// Why the two numbers differ, where more than rounding tells them apart; stands wherever both are shown.
function whyDifferent(expected, imputed) {
  if (Math.abs(expected - imputed) < 0.5) return '';
  const both = `imputed (${number(imputed)}) than expected (${expectedNumber(expected)})`;
  return imputed < expected ? `Fewer are ${both}, because a doubtful guess costs more than it helps.`
    : `More are ${both}: each lowers the expected distance to the truth at this cost.`;
}

// A warning as text in which the names of streams, as Python writes them, choose these streams.
function namedStreams(text, places, choose) {
  return text.split(/(\b[Ss]tream )('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+)/).map((part, n) => {
    const place = n % 3 === 2 ? places.get(part.replace(/^['"]|['"]$/g, '').replace(/\\(['"\\])/g, '$1')) : undefined;
    if (place === undefined) return part;
    const name = element('button', { type: 'button', class: 'name' }, part);
    name.addEventListener('click', () => choose(place));
    return name;
  });
}

function showWarnings(index, choose) {
  const list = document.getElementById('warning-list');
  const verdict = index.check && index.check.flagged ? [`The check of the model: ${index.check.verdict.split('\n')[0]}`] : [];
  const places = new Map(index.warnings.length ? index.streams.id.map((name, i) => [name, i]) : []);
  const warnings = index.warnings.map((text) => namedStreams(text, places, choose));
  list.replaceChildren(...[verdict, ...warnings].filter((parts) => parts.length).map((parts) => element('li', {}, ...parts)));
  document.getElementById('warnings').hidden = !list.children.length;
}

function showTypes(index, answer) {
  const { observed, expected, intervals } = index.byType, most = Math.max(...expected, 1e-9);
  const order = index.types.map((_, k) => k).sort((a, b) => expected[b] - expected[a] || observed[b] - observed[a]);
  const rows = order.map((k) => [
    index.types[k], number(observed[k]), element('td', {}, expectedNumber(expected[k]), element('div', { class: 'small muted' }, numberInterval(intervals[k]))), number(answer.byType[k]),
    answer.byType[k] ? (answer.sure[k] / answer.byType[k]).toFixed(2) : '–',
    element('td', { class: 'bars', 'aria-hidden': 'true' }, element('span', { class: 'bar', style: `width:${(90 * expected[k] / most).toFixed(1)}%` })),
  ]);
  const table = makeTable(['type', 'observed', 'expected missing, 90 %', 'imputed', 'mean prob\u00adability'], rows, 'Events by type');
  table.querySelector('thead tr').append(element('th', { class: 'bars', 'aria-hidden': 'true' }, 'expected missing, as a bar'));
  document.getElementById('types').replaceChildren(table);
}

function showCost(index, which, words) {
  const answer = index.answers[which], slider = document.getElementById('slider');
  const cost = words.amount(answer.cost);
  const risk = share(total(answer.risk), total(answer.nothing));
  const told = risk === null ? '' : ` Its expected distance to the truth is ${Math.round(100 * risk)} % of what predicting nothing risks.`;
  const expected = total(index.streams.expected), made = total(answer.events), why = whyDifferent(expected, made);
  slider.setAttribute('aria-valuetext', `${cost}, ${count(made, 'event')} imputed`);
  document.getElementById('cost-words').replaceChildren(
    element('b', {}, cost), `: ${count(made, 'event')} imputed, ${expectedNumber(expected)} expected missing (90 %: ${numberInterval(index.interval)}).`,
    element('span', { class: 'more' }, `${told} An event too many or too few counts like one this far off. At a higher cost less probable events can be imputed, and events can move.`));
  document.getElementById('why').textContent = why && `${why} For totals, take the expected number.`;
  document.getElementById('again').replaceChildren(...(answer.command
    ? ['The table at this cost: ', element('code', { id: 'command' }, answer.command)]
    : ['No draws were kept (--no-draws): impute again without that, for a table at another cost.']));
}

function showCheck(check, words) {
  if (!check) return;
  document.getElementById('check').hidden = false;
  document.getElementById('verdict').textContent = check.verdict;
  const { file, missing, proposal, particles, imputed_streams: imputed, streams } = check.about;
  const hidden = missing ? `; hidden: ${missing}` : '', how = proposal ? `; ${proposal} with ${number(particles)} particles` : '';
  document.getElementById('checked').textContent = `Checked on ${count(imputed ?? streams, 'complete stream')}${file ? ` of ${file}` : ''}${hidden}${how}.`;
  document.getElementById('check-charts').replaceChildren(...checkCharts(check, words));
}

function showFacts(facts) {
  document.getElementById('facts').replaceChildren(...facts.flatMap(([name, value]) =>
    [element('dt', {}, name), element('dd', {}, value)]));
}
