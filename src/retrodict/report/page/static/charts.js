// Small charts with a caption, a description for screen readers and their numbers as a table.
const CHART = { width: 320, height: 204, left: 44, right: 14, top: 14, bottom: 34 };  // the largest dot has a radius of 11

function frame([left, right], [low, high], label, logarithmic = false) {
  const { width, height } = CHART, scale = logarithmic ? Math.log : (value) => value;
  const x = (value) => CHART.left + (scale(value) - scale(left)) / (scale(right) - scale(left) || 1) * (width - CHART.left - CHART.right);
  const y = (value) => height - CHART.bottom - (value - low) / (high - low || 1) * (height - CHART.top - CHART.bottom);
  const picture = drawing('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label });
  picture.append(drawing('path', { class: 'axis', d: `M${CHART.left} ${CHART.top}V${y(low)}H${width - CHART.right}` }));
  return { picture, x, y };
}

function ticksOn({ picture, x, y }, across, up, name) {
  for (const [value, label] of across) {
    picture.append(drawing('text', { x: x(value), y: CHART.height - 20, 'text-anchor': 'middle' }, label));
  }
  for (const [value, label] of up) {
    picture.append(drawing('text', { x: CHART.left - 5, y: y(value) + 4, 'text-anchor': 'end' }, label));
  }
  picture.append(drawing('text', { x: (CHART.left + CHART.width) / 2, y: CHART.height - 4, 'text-anchor': 'middle' }, name));
}

function chart(caption, picture, heads, rows) {
  const numbers = element('details', {}, element('summary', { class: 'small' }, 'numbers'));
  numbers.append(element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `numbers: ${caption}` }, makeTable(heads, rows, caption)));
  return element('figure', {}, element('figcaption', {}, caption), picture, numbers);
}

const upTo = (values, least = 0) => Math.max(least, ...values.filter((value) => value !== null && Number.isFinite(value))) * 1.08 || 1;
const share = (value, of) => (of > 0 ? value / of : null);
const quarters = [0, 0.25, 0.5, 0.75, 1].map((value) => [value, String(value)]);

function curve(caption, costs, values, axis, top) {
  const made = frame([costs[0], costs[costs.length - 1]], [0, top], `${caption}: ${values.map((v, n) => `${brief(v)} at cost ${brief(costs[n])}`).join(', ')}`, true);
  ticksOn(made, costs.map((cost) => [cost, brief(cost)]), [0, top / 2, top].map((value) => [value, brief(value)]), axis);
  const known = values.map((value, n) => [costs[n], value]).filter(([, value]) => value !== null);
  made.picture.append(drawing('path', { class: 'ours line', style: 'fill:none', d: known.map(([cost, value], n) => `${n ? 'L' : 'M'}${made.x(cost)} ${made.y(value)}`).join('') }));
  for (const [cost, value] of known) made.picture.append(drawing('circle', { class: 'ours', cx: made.x(cost), cy: made.y(value), r: 4 }));
  return made.picture;
}

function tradeCharts(index, words) {
  const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
  const costs = index.answers.map((answer) => answer.cost), unit = words.unit ? ` (${words.unit})` : '';
  const shares = index.answers.map((answer) => share(sum(answer.risk), sum(answer.nothing)));
  const events = index.answers.map((answer) => sum(answer.events));
  const axis = `cost of an event too many or too few${unit}`;
  const first = 'Expected distance to the truth, as a share of what predicting nothing risks', second = 'Imputed events';
  const scores = index.answers.map(({ score, cost }) => score && share(sum(score.distance), cost * sum(score.missing)));
  const third = 'True distance, as a share of that of predicting nothing';
  const known = scores.some((value) => value !== null)
    ? [chart(third, curve(third, costs, scores, axis, Math.max(1, ...scores)), ['cost', 'share'], costs.map((cost, n) => [number(cost), number(scores[n])]))] : [];
  return [
    chart(first, curve(first, costs, shares, axis, 1), ['cost', 'share'], costs.map((cost, n) => [number(cost), number(shares[n])])),
    ...known,
    chart(second, curve(second, costs, events, axis, upTo(events)), ['cost', 'events'], costs.map((cost, n) => [number(cost), number(events[n])])),
  ];
}

function checkCharts(check, words) {
  const charts = [];
  if (check.reliability) charts.push(reliability(check), ranks(check));
  if (check.coverage?.by_type?.length) charts.push(coverage(check.coverage));
  if (check.counts) charts.push(counts(check.counts, 'Hidden events by type: true (square) and expected (dot, ± 2 standard errors)', 'hidden'));
  if (check.distance) charts.push(distances(check.distance, words));
  const fit = check.observed || check.goodness.counts;
  const what = check.observed ? 'Events of incomplete streams' : 'Events of complete streams';
  charts.push(counts(fit, `${what} by type: true (square) and expected (dot, ± 2 standard errors)`, 'there'));
  return charts;
}

// Two standard errors around a share, within 0 and 1. Where all or none of n events agree, that error is 0, and says
// nothing: the share could be as far away as Wilson's interval reaches, 4 / (n + 4).
function within({ value, error, events }) {
  const far = error ? 2 * error : 4 / (events + 4);
  return [Math.max(value - far, 0), Math.min(value + far, 1)];
}

function reliability(check) {
  const { value, error } = check.coverage;
  const covered = value === null ? '' : ` 90 % intervals cover ${Math.round(100 * value)} % ± ${Math.round(100 * error)} % (standard error).`;
  const caption = `How often imputed events of a probability were there; on the line is right.${covered}`;
  const made = frame([0, 1], [0, 1], `${caption} ${check.reliability.map((row) => `${brief(row.value)} at ${brief(row.probability)}`).join(', ')}`);
  ticksOn(made, quarters, quarters, 'probability of an imputed event');
  made.picture.append(drawing('path', { class: 'ideal', d: `M${made.x(0)} ${made.y(0)}L${made.x(1)} ${made.y(1)}` }));
  const all = check.reliability.reduce((total, row) => total + row.events, 0) || 1;
  for (const row of check.reliability) {
    if (row.value === null) continue;
    const x = made.x(row.probability), [low, high] = within(row).map(made.y);
    made.picture.append(drawing('path', { class: 'ours', d: `M${x} ${low}V${high}`, 'stroke-width': 2 }));
    made.picture.append(drawing('circle', { class: 'ours', cx: made.x(row.probability), cy: made.y(row.value), r: 3 + 8 * Math.sqrt(row.events / all) }));
  }
  return chart(caption, made.picture, ['probability', 'there', 'events'], check.reliability.map((row) => [number(row.probability), number(row.value), number(row.events)]));
}

function coverage({ by_type, nominal }) {
  const caption = `How many ${Math.round(100 * nominal)} % intervals of imputed events hold the true time, by type (± 2 standard errors); on the line is right.`;
  const shown = [...by_type].sort((a, b) => b.events - a.events).slice(0, 8);
  const made = frame([0, 1], [0, 1], `${caption} ${shown.map((row) => `${row.type}: ${brief(row.value)} of ${count(row.events, 'event')}`).join('; ')}`);
  const high = (CHART.height - CHART.top - CHART.bottom) / shown.length;
  made.picture.append(drawing('path', { class: 'ideal', d: `M${made.x(nominal)} ${made.y(0)}V${made.y(1)}` }));
  shown.forEach((row, n) => {
    const y = CHART.top + (n + 0.62) * high, [low, top] = within(row).map(made.x);
    made.picture.append(
      drawing('text', { x: CHART.left + 4, y: y - Math.min(7, high * 0.3) }, shorten(row.type, 40)),
      drawing('path', { class: 'ours', d: `M${low} ${y}H${top}`, 'stroke-width': 2 }), drawing('circle', { class: 'ours', cx: made.x(row.value), cy: y, r: 4 }),
    );
  });
  ticksOn(made, quarters, [], 'share of intervals');
  return chart(caption, made.picture, ['type', 'share', 'standard error', 'events'], by_type.map((row) => [row.type, number(row.value), number(row.error), number(row.events)]));
}

function ranks(check) {
  const caption = 'Rank of the true number of hidden events among the guesses; flat is right.';
  const bars = check.ranks['by type'], made = frame([0, 1], [0, upTo(bars, 2 / bars.length)], `${caption} ${bars.map(brief).join(', ')}`);
  const half = 1.96 * Math.sqrt((1 - 1 / bars.length) / bars.length / Math.max(check.about.imputed_streams, 1));
  const [low, high] = [Math.max(0, 1 / bars.length - half), 1 / bars.length + half];
  made.picture.append(drawing('rect', { class: 'band', x: made.x(0), width: made.x(1) - made.x(0), y: made.y(high), height: Math.max(1, made.y(low) - made.y(high)) }));
  ticksOn(made, quarters, [[0, '0'], [1 / bars.length, brief(1 / bars.length)]], 'rank');
  bars.forEach((bar, n) => made.picture.append(drawing('rect', {
    class: 'ours', 'fill-opacity': 0.45, x: made.x(n / bars.length) + 1, width: made.x(1 / bars.length) - made.x(0) - 2, y: made.y(bar), height: made.y(0) - made.y(bar),
  })));
  return chart(caption, made.picture, ['rank up to', 'share'], bars.map((bar, n) => [number((n + 1) / bars.length), number(bar)]));
}

function counts(rows, caption, word) {
  const shown = rows.filter((row) => row.type !== null && (row.true || row.expected > 0.5))
    .sort((a, b) => Math.max(b.true, b.expected) - Math.max(a.true, a.expected)).slice(0, 8);
  const made = frame([0, upTo(shown.flatMap((row) => [row.true, row.expected + 2 * row.error]))], [0, 1], `${caption} ${shown.map((row) => `${row.type}: ${number(row.true)} ${word}, ${brief(row.expected)} expected`).join('; ')}`);
  const high = (CHART.height - CHART.top - CHART.bottom) / Math.max(shown.length, 1);
  shown.forEach((row, n) => {
    const y = CHART.top + (n + 0.62) * high;
    made.picture.append(
      drawing('text', { x: CHART.left + 4, y: y - Math.min(7, high * 0.3) }, shorten(row.type, 40)),
      drawing('path', { class: 'ours', d: `M${made.x(Math.max(row.expected - 2 * row.error, 0))} ${y}H${made.x(row.expected + 2 * row.error)}`, 'stroke-width': 2 }),
      drawing('circle', { class: 'ours', cx: made.x(row.expected), cy: y, r: 4 }),
      drawing('rect', { class: 'other', 'fill-opacity': 0, 'stroke-width': 2, x: made.x(row.true) - 4, y: y - 4, width: 8, height: 8 }),
    );
  });
  const top = upTo(shown.flatMap((row) => [row.true, row.expected + 2 * row.error])) / 1.08;
  ticksOn(made, [[0, '0'], [top, brief(top)]], [], 'events');
  return chart(caption, made.picture, ['type', word, 'expected', '± s.e.'], rows.filter((row) => row.type !== null).map((row) => [row.type, number(row.true), number(row.expected), number(row.error)]));
}

function distances(rows, words) {
  const caption = 'Distance to the truth; 1 is predicting nothing. Imputed (dots) and constant rates (squares).';
  const costs = rows.map((row) => row.cost), values = rows.flatMap((row) => [row.share_of_nothing.value, row.constant_rates.value]);
  const top = upTo(values, 1), made = frame([costs[0] * 0.8, costs[costs.length - 1] * 1.25], [0, top], `${caption} ${rows.map((row) => `${brief(row.share_of_nothing.value)} against ${brief(row.constant_rates.value)} at cost ${brief(row.cost)}`).join(', ')}`, true);
  ticksOn(made, costs.map((cost) => [cost, brief(cost)]), [0, 0.5, 1].map((value) => [value, String(value)]), `cost${words.unit ? ` (${words.unit})` : ''}`);
  made.picture.append(drawing('path', { class: 'ideal', d: `M${CHART.left} ${made.y(1)}H${CHART.width - CHART.right}` }));
  for (const row of rows) {
    const x = made.x(row.cost), [own, flat] = [row.share_of_nothing.value, row.constant_rates.value];
    if (own !== null) made.picture.append(drawing('circle', { class: 'ours', cx: x, cy: made.y(own), r: 4.5 }));
    if (flat !== null) made.picture.append(drawing('rect', { class: 'other', x: x - 4, y: made.y(flat) - 4, width: 8, height: 8 }));
  }
  return chart(caption, made.picture, ['cost', 'imputed', 'constant rates'], rows.map((row) => [number(row.cost), number(row.share_of_nothing.value), number(row.constant_rates.value)]));
}
