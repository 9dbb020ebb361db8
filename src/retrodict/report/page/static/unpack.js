// Packed data: base 64 of compressed JSON, an index of all streams and blocks of what there is to see of each.
function unpack(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(gunzip(bytes)));
}

// Times of events from their differences, in the unit of the streams.
function times(differences, start, step) {
  let sum = 0;
  return differences.map((difference) => start + (sum += difference) * step);
}

class Data {
  constructor(index) {
    this.index = index;
    this.blocks = new Map();
  }

  // What there is to see of stream i; a block is unpacked when the first of its streams is looked at.
  stream(i) {
    const firsts = this.index.blocks;
    let low = 0;
    for (let high = firsts.length - 1; low < high;) {
      const middle = Math.ceil((low + high) / 2);
      if (firsts[middle] <= i) low = middle; else high = middle - 1;
    }
    if (!this.blocks.has(low)) {
      if (this.blocks.size > 8) this.blocks.clear();
      this.blocks.set(low, unpack(`block-${low}`));
    }
    return this.decode(this.blocks.get(low)[i - firsts[low]], i);
  }

  decode(row, i) {
    const start = this.index.streams.start[i], end = this.index.streams.end[i], step = row.q;
    const within = (t) => Math.min(Math.max(t, start), end);  // what was rounded stays in the stream
    const events = ([differences, types], kind) =>
      times(differences, start, step).map((t, n) => ({ kind, t: within(t), k: types[n] }));
    const answers = row.a.map((answer) => events(answer, 'imputed').map((event, n) => ({
      ...event, p: answer[2][n] / 1000, from: within(event.t - answer[3][n] * step), to: within(event.t + answer[4][n] * step),
    })));
    return {
      number: i, start, end, step, answers,
      observed: events(row.o, 'observed'),
      truth: row.t && events(row.t, 'truth'),
      draws: row.d.map((draw) => events(draw, 'draw')),
      expected: row.e, rates: row.r, families: row.f, rows: row.k,
      windows: row.w.map(([from, to, types]) => ({ from: within(start + from * step), to: within(start + to * step), types })),
    };
  }
}
