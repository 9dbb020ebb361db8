// The marks of a timeline, as SVG: a row for each type, and the effective families below.
function drawing(tag, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const LABEL = 18, BELIEF = 24, MARK = 7, DRAWS = 26, GAP = 10, FAMILIES = 46, AXIS = 26, SIDE = 14, RADIUS = 6, LANES = [0, 4, -4];

// Where each row is: its top, its line, and whether anything is believed to be missing there.
function layRows(stream, answer, types) {
  const believed = new Set([...Object.keys(stream.rates).map(Number), ...answer.map((event) => event.k)]);
  let y = 4;
  const rows = stream.rows.map((k) => {
    const open = believed.has(k);
    const line = y + LABEL + (open ? BELIEF : 4) + MARK;
    const row = { k, top: y, line, open, name: types[k] };
    y = line + MARK + (open ? DRAWS : 0) + GAP;
    return row;
  });
  return { rows, bottom: y, height: y + FAMILIES + AXIS + 14 };
}

function drawRow(row, stream, answer, x, width) {
  const marks = drawing('g', {});
  const seen = (event) => event.k === row.k && x(event.to ?? event.t) > -20 && x(event.from ?? event.t) < width + 20;
  const missing = stream.expected[row.k];
  const words = missing === undefined ? '' : ` · ${expectedNumber(missing)} expected missing`;
  const label = drawing('text', { x: SIDE, y: row.top + 13, class: 'type' }, shorten(row.name, width / 9), words);
  label.append(drawing('title', {}, row.name));
  for (const window of stream.windows.filter((one) => one.types.includes(row.k))) {
    const [from, to] = [window.from, window.to].map(x), low = row.line + MARK + (row.open ? DRAWS : 0);
    marks.append(drawing('rect', { class: 'window', x: from, width: to - from, y: row.top, height: low - row.top }));
  }
  marks.append(label, drawing('line', { class: 'base', x1: 0, x2: width, y1: row.line, y2: row.line }));
  if (stream.rates[row.k]) marks.append(drawing('path', { class: 'belief', d: belief(row, stream, x) }));
  if (row.open) marks.append(drawing('path', { class: 'draws', d: ticksOf(row, stream, x, width), fill: 'none' }));
  const squares = dense(stream.observed.filter(seen), x).map((at) => `M${at - 4.5} ${row.line - 4.5}h9v9h-9z`).join('');
  if (squares) marks.append(drawing('path', { class: 'seen', d: squares }));
  const free = LANES.map(() => -Infinity);
  for (const event of answer.filter(seen).sort((a, b) => a.from - b.from)) {
    const at = { cx: x(event.t), cy: row.line, r: RADIUS }, [from, to] = [x(event.from), x(event.to)];
    const open = free.findIndex((end) => end < from), lane = open < 0 ? free.indexOf(Math.min(...free)) : open;
    const y = row.line + LANES[lane];  // beside what it overlaps
    free[lane] = to;
    marks.append(
      drawing('path', { class: 'span', d: `M${from} ${y - 3}v6M${from} ${y}H${to}M${to} ${y - 3}v6` }),
      drawing('circle', { class: 'ring', ...at }),
      drawing('circle', { class: 'guess', ...at, opacity: Math.max(0.12, event.p) }),
      intervalWithin(at.cx, at.cy, LANES[lane], from, to, event.p),
    );
  }
  const diamonds = dense((stream.truth || []).filter(seen), x)
    .map((at) => `M${at} ${row.line - 8}l5 8l-5 8l-5 -8z`).join('');
  if (diamonds) marks.append(drawing('path', { class: 'true', d: diamonds }));
  return marks;
}

// The interval where the mark of its event hides it: across that mark, ``off`` below its middle, in another colour.
function intervalWithin(cx, cy, off, from, to, p) {
  const y = cy + off, half = off ? 1.5 : 3, reach = Math.sqrt((RADIUS - 1) ** 2 - off ** 2);
  const [left, right] = [Math.max(from, cx - reach), Math.min(to, cx + reach)];
  const ends = [from, to].filter((end) => Math.abs(end - cx) < reach).map((end) => `M${end} ${y - half}v${2 * half}`).join('');
  return drawing('path', { class: p < 0.5 ? 'within faint' : 'within', d: `${ends}M${left} ${y}H${right}` });
}

// Places in pixels, one for all events that share a pixel.
function dense(events, x) {
  return [...new Set(events.map((event) => Math.round(2 * x(event.t)) / 2))];
}

// From a ground above the marks of the row, so that what is hardly believed has hardly any height.
function belief(row, stream, x) {
  const shares = stream.rates[row.k], cell = (stream.end - stream.start) / shares.length, ground = row.line - MARK;
  let path = `M${x(stream.start).toFixed(1)} ${ground}`;
  shares.forEach((share, n) => {
    path += `V${(ground - share / 100 * BELIEF).toFixed(1)}H${x(stream.start + (n + 1) * cell).toFixed(1)}`;
  });
  return `${path}V${ground}Z`;
}

function ticksOf(row, stream, x, width) {
  const step = DRAWS / Math.max(stream.draws.length, 1);
  return stream.draws.map((draw, n) => draw.map((event) => {
    const at = x(event.t);
    return event.k === row.k && at >= 0 && at <= width
      ? `M${at.toFixed(1)} ${(row.line + MARK + 2 + n * step).toFixed(1)}v${Math.max(step, 1.5).toFixed(1)}` : '';
  }).join('')).join('');
}

// Effective families of each segment, on a scale of logarithms; where they are few, the ground is coloured.
function drawFamilies(stream, few, top, x, width) {
  const marks = drawing('g', {}), edges = [stream.start, ...stream.observed.map((event) => event.t), stream.end];
  const most = Math.max(100, ...stream.families.map((each) => each ?? 1));
  const y = (value) => top + FAMILIES - 4 - (FAMILIES - 20) * Math.log(Math.max(value ?? 1, 1)) / Math.log(most);
  marks.append(drawing('text', { x: SIDE, y: top + 11 }, `effective families (up to ${brief(most)}; doubtful below ${few})`));
  marks.append(drawing('rect', { class: 'few', x: 0, width, y: y(few), height: y(1) - y(few) }));
  const path = stream.families.map((each, n) => `${n ? 'L' : 'M'}${x(edges[n]).toFixed(1)} ${y(each).toFixed(1)}H${x(edges[n + 1]).toFixed(1)}`);
  marks.append(drawing('path', { class: 'fam', d: path.join('') }));
  return marks;
}

function drawAxis(ticks, bottom, x, width) {
  const marks = drawing('g', {});
  let free = -Infinity;
  for (const [t, label] of ticks) {
    const at = x(t), half = label.length * 3.4;
    marks.append(drawing('line', { class: 'gridline', x1: at, x2: at, y1: 0, y2: bottom }));
    const middle = Math.min(Math.max(at, half + 2), width - half - 2);
    if (middle - half < free) continue;
    marks.append(drawing('text', { x: middle, y: bottom + 16, 'text-anchor': 'middle' }, label));
    free = middle + half + 8;
  }
  return marks;
}

function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.max(3, most - 1))}…`;
}
