// Numbers and times in words, and elements with text: names from a file are never read as HTML.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const plain = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });
const small = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

function number(value) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  return (size >= 1000 ? whole : size < 1 ? small : plain).format(value);
}

function brief(value) {
  return value === null ? '–' : Math.abs(value) >= 100 ? whole.format(value) : String(Number(value.toPrecision(2)));
}

// An expected number of events, the same wherever it stands: no one reads it to more than two places after the point.
function expectedNumber(value) {
  return value > 0 && value < 0.005 ? 'about 0' : brief(value < 1 ? Number(value.toFixed(2)) : value);
}

// From how many to how many events are missing with a probability of 90 %.
function numberInterval([low, high]) {
  return low === high ? number(low) : `${number(low)} to ${number(high)}`;
}

function count(amount, noun) {
  return `${number(amount)} ${noun}${amount === 1 ? '' : 's'}`;
}

const MOST_WINDOWS = 4;

// The shaded windows of a stream, for those who do not see them: from when to when, and of which types.
function windowWords({ windows, step }, index, words) {
  const told = windows.slice(0, MOST_WINDOWS).map(({ from, to, types }) => {
    const all = types.length === index.types.length;
    return `${words.between(from, to, step)}${all ? '' : ` (${types.map((k) => index.types[k]).join(', ')})`}`;
  });
  const more = windows.length > MOST_WINDOWS ? ` and ${number(windows.length - MOST_WINDOWS)} more windows` : '';
  return told.length ? `More goes missing in ${told.join('; ')}${more}.` : '';
}

const STEPS = [  // milliseconds between ticks, and what a tick says
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((ms) => [ms, 'milli']),
  ...[1, 2, 5, 10, 15, 30].map((s) => [s * 1e3, 'second']),
  ...[1, 2, 5, 10, 15, 30].map((m) => [m * 6e4, 'minute']),
  ...[1, 2, 3, 6, 12].map((h) => [h * 36e5, 'minute']),
  ...[1, 2, 7, 14].map((d) => [d * 864e5, 'day']),
  ...[30, 91, 182].map((d) => [d * 864e5, 'month']),
  ...[1, 2, 5, 10, 20, 50, 100].map((y) => [y * 365.25 * 864e5, 'year']),
];
const pad = (value, digits = 2) => String(value).padStart(digits, '0');
const LONG_MONTHS = [
  'January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December',
];
const MONTHS = LONG_MONTHS.map((name) => name.slice(0, 3));
const OF_CLOCK = ['hour', 'minute', 'second', 'fraction', 'half'];

// Whether ticks are so far apart that none hides the label of another; ``slot`` is the time in which a label of 15 fits.
function labelsFit(ticks, slot) {
  return ticks.every(([t, label], n) => !n || t - ticks[n - 1][0] >= slot * (ticks[n - 1][1].length + label.length + 2) / 32);
}

class TimeWords {
  constructor(axis) {
    this.axis = axis;
    this.dated = axis.origin !== null;
    this.unit = axis.unit ? `${axis.unit}s` : '';
    const fixed = /^([+-])(\d\d):(\d\d)$/.exec(axis.zone || '');
    this.fixed = fixed ? Number(fixed[1] + '1') * (Number(fixed[2]) * 60 + Number(fixed[3])) * 6e4 : axis.zone ? null : 0;
    if (this.fixed === null) {
      this.zoned = new Intl.DateTimeFormat('en-US', {
        timeZone: axis.zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric',
        hour: 'numeric', minute: 'numeric', second: 'numeric',
      });
    }
  }

  // Milliseconds since 1970 of an instant of the axis, and the same as its clock on the wall would be in UTC.
  instant(t) { return this.axis.origin + t * this.axis.scale * 1000; }

  onWall(ms) {
    if (this.fixed !== null) return ms + this.fixed;
    const part = Object.fromEntries(this.zoned.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const wall = new Date(0);
    wall.setUTCFullYear(part.year, part.month - 1, part.day);
    wall.setUTCHours(part.hour, part.minute, part.second);
    return wall.getTime() + (((ms % 1000) + 1000) % 1000);
  }

  // A time in full, as precise as the stream is stored.
  full(t, step = 0) {
    if (!this.dated) return `${this.number(t, step)}${this.unit ? ` ${this.unit}` : ''}`;
    return this.stamp(t, step).join('');
  }

  // The day, what stands after it, and the time of day; where the time of day comes first, all of it in place of the day.
  stamp(t, step) {
    const ms = this.shown(this.instant(t), step * this.axis.scale * 1000);
    const wall = new Date(this.onWall(ms));
    const sub = ms % 1000 ? `.${pad(wall.getUTCMilliseconds(), 3)}` : '';
    const seconds = this.axis.grain === 60000 ? '' : `:${pad(wall.getUTCSeconds())}${sub}`;
    const minutes = `${pad(wall.getUTCHours())}:${pad(wall.getUTCMinutes())}`;
    return this.axis.form ? this.formed(wall, minutes, seconds === ':00' ? '' : seconds, sub) : [this.day(wall), ' ', minutes + seconds];
  }

  // The same as the table writes it: what its dates leave out, seconds or the time of day, only where it is not zero.
  formed(wall, minutes, seconds, sub) {
    const { form } = this.axis, has = (name) => form.some(([part]) => part === name), isClock = (piece) => OF_CLOCK.includes(piece[0]);
    const rest = { minute: has('second') ? '' : seconds, second: has('fraction') ? '' : sub };
    const text = (piece) => (typeof piece === 'string' ? piece : this.part(wall, ...piece) + (rest[piece[0]] ?? ''));
    const join = (pieces) => pieces.map(text).join('').trim();
    if (!has('hour')) return wall % 864e5 ? [join(form), ' ', minutes + seconds] : [join(form), '', ''];
    const cut = form.findIndex(isClock), days = form.slice(0, cut), clocks = form.slice(cut);
    if (clocks.some((piece) => typeof piece !== 'string' && !isClock(piece))) return [join(form), '', ''];
    return [join(days), days.slice(-1).filter((piece) => typeof piece === 'string').join(''), join(clocks)];
  }

  // One part of a date, with as many digits as that of the example.
  part(wall, name, example) {
    const hour = wall.getUTCHours(), month = wall.getUTCMonth(), width = example.length, twelve = this.axis.form.some(([part]) => part === 'half');
    const half = (width > 2 ? ['a.m.', 'p.m.'] : ['am', 'pm'])[Number(hour >= 12)];
    return {
      year: () => pad(wall.getUTCFullYear(), 4),
      short_year: () => pad(wall.getUTCFullYear() % 100),
      month: () => pad(month + 1, width),
      name: () => LONG_MONTHS[month],
      short_name: () => MONTHS[month],
      day: () => pad(wall.getUTCDate(), width),
      hour: () => pad(twelve ? hour % 12 || 12 : hour, width),
      minute: () => pad(wall.getUTCMinutes(), width),
      second: () => pad(wall.getUTCSeconds(), width),
      fraction: () => pad(wall.getUTCMilliseconds(), 3).replace(/0+$/, '').padEnd(width, '0'),
      half: () => (example === example.toUpperCase() ? half.toUpperCase() : half),
    }[name]();
  }

  // Milliseconds as they are shown: whole minutes or seconds, rounded down as in the table, where all observed times are such.
  shown(ms, quantum) {
    const { grain } = this.axis, coarse = Math.max(grain, 1000);
    if (quantum >= coarse / 2) return Math.round(ms / coarse) * coarse;
    return grain ? Math.floor((ms + quantum) / grain) * grain : Math.round(ms);
  }

  // From one time to another, and an amount of time, with the day or the unit said once.
  between(from, to, step = 0) {
    if (!this.dated) return `${this.number(from, step)} to ${this.full(to, step)}`;
    const first = this.stamp(from, step), last = this.stamp(to, step);
    return `${first.join('')} to ${first[0] === last[0] && first[2] && last[2] ? last[2] : last.join('')}`;
  }

  amount(value) {
    return this.unit ? `${number(value)} ${value === 1 ? this.axis.unit : this.unit}` : number(value);
  }

  day(wall) { return `${pad(wall.getUTCFullYear(), 4)}-${pad(wall.getUTCMonth() + 1)}-${pad(wall.getUTCDate())}`; }

  number(t, step) {
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step || 1e-3)) - 2));
    return Math.abs(t) >= 1e15 ? t.toPrecision(8) : String(Number(t.toFixed(digits)));
  }

  // Up to about ``most`` ticks between two times: [time, label]. Where these are hardly any, more if their labels fit.
  ticks(from, to, most) {
    if (!(to > from)) return [[from, this.dated ? this.full(from) : String(from)]];
    const found = (finer) => (this.dated ? this.dates(from, to, most, finer) : this.numbers(from, to, most, finer));
    let best = found(0);
    for (let finer = 1; finer <= 3 && best.length < 3; finer++) {
      const next = found(finer);
      if (!labelsFit(next, (to - from) / most)) break;
      best = next;
    }
    return best;
  }

  numbers(from, to, most, finer) {
    const rough = (to - from) / most * 0.999, steps = (n) => 10 ** Math.floor(n / 3) * [1, 2, 5][(n % 3 + 3) % 3];
    let coarse = 3 * Math.floor(Math.log10(rough));
    while (steps(coarse) < rough) coarse++;
    const step = steps(coarse - finer);
    const digits = Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)));
    const found = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to + 1e-9 * step; n++) {
      found.push([n * step, Math.abs(n * step) < 1e9 ? (n * step).toFixed(digits) : (n * step).toPrecision(10)]);
    }
    return found;
  }

  dates(from, to, most, finer) {
    const first = this.instant(from), last = this.instant(to);
    const enough = STEPS.findIndex(([ms]) => (last - first) / ms <= most);
    const [step, kind] = STEPS[Math.max(0, (enough < 0 ? STEPS.length - 1 : enough) - finer)];
    const walls = kind === 'month' || kind === 'year' ? this.months(first, last, step) : this.even(first, last, step);
    let day = '';
    return walls.map(([ms, at]) => {
      const wall = new Date(at), today = this.day(wall);
      const label = this.tick(wall, kind, today !== day, kind === 'milli' ? wall.getUTCMilliseconds() : 0);
      day = today;
      return [from + (ms - first) / (this.axis.scale * 1000), label];
    });
  }

  even(first, last, step) {
    const found = [];
    const shift = this.onWall(first) - first;
    for (let at = Math.ceil((first + shift) / step) * step; at - shift <= last; at += step) {
      const ms = at - (this.onWall(at - shift) - (at - shift));  // the wall clock may have changed since
      if (ms >= first && ms <= last) found.push([ms, at]);
    }
    return found;
  }

  months(first, last, step) {
    const months = Math.max(1, Math.round(step / (30.4 * 864e5))), found = [];
    const begin = new Date(this.onWall(first));
    const whole = Math.floor((begin.getUTCFullYear() * 12 + begin.getUTCMonth()) / months) * months;
    for (let month = whole; ; month += months) {
      const wall = new Date(0);
      wall.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
      const at = wall.getTime(), ms = at - (this.onWall(at) - at);
      if (ms > last) return found;
      if (ms >= first) found.push([ms, at]);
    }
  }

  tick(wall, kind, isNewDay, ms) {
    const date = `${wall.getUTCDate()} ${MONTHS[wall.getUTCMonth()]}`;
    if (kind === 'year') return String(wall.getUTCFullYear());
    if (kind === 'month') return `${MONTHS[wall.getUTCMonth()]} ${wall.getUTCFullYear()}`;
    if (kind === 'day') return date;
    const clock = `${pad(wall.getUTCHours())}:${pad(wall.getUTCMinutes())}`;
    if (kind === 'minute') return isNewDay ? `${date} ${clock}` : clock;
    const seconds = `${clock}:${pad(wall.getUTCSeconds())}`;
    return kind === 'second' ? seconds : `${seconds}.${pad(ms, 3)}`;
  }
}
