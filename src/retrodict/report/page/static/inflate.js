// Gzip, unpacked while the script waits: a browser's own DecompressionStream ends some time after the page has loaded,
// and a picture taken at that moment would lack what is drawn of it.
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const LONGER = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5];  // extra bits of a length
const FARTHER = [0, 0, ...Array.from({ length: 28 }, (_, n) => n >> 1)];  // and of a distance
const firsts = (extra, first) => extra.map((bits) => (first += 1 << bits) - (1 << bits));
const LENGTHS = [...firsts(LONGER, 3), 258], DISTANCES = firsts(FARTHER, 1);
LONGER.push(0);

// For the next bits, the symbol whose code they begin with and the length of that code.
function codeTable(lengths) {
  const most = Math.max(...lengths), table = new Uint16Array(1 << most);
  for (let bits = 1, code = 0; bits <= most; bits++, code <<= 1) {
    lengths.forEach((length, symbol) => {
      if (length !== bits) return;
      let turned = 0;
      for (let n = 0; n < bits; n++) turned |= (code >> n & 1) << (bits - 1 - n);
      for (let at = turned; at < table.length; at += 1 << bits) table[at] = symbol << 4 | bits;
      code++;
    });
  }
  return { table, most };
}

class Bits {
  constructor(bytes) { Object.assign(this, { bytes, at: 10, hold: 0, held: 0 }); }  // the head of ten bytes has no name

  fill(most) {
    while (this.held < most) {
      if (this.at > this.bytes.length) throw new Error('data end too soon');
      this.hold |= this.bytes[this.at++] << this.held;
      this.held += 8;
    }
  }

  take(bits) {
    this.fill(bits);
    const value = this.hold & (1 << bits) - 1;
    this.hold >>>= bits;
    this.held -= bits;
    return value;
  }

  symbol({ table, most }) {
    this.fill(most);
    const found = table[this.hold & (1 << most) - 1], bits = found & 15;
    if (!bits) throw new Error('data with a code that there is not');
    this.hold >>>= bits;
    this.held -= bits;
    return found >> 4;
  }

  toByte() {
    this.at -= this.held >> 3;
    this.hold = this.held = 0;
  }
}

const FIXED = [
  codeTable(Array.from({ length: 288 }, (_, n) => (n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8))), codeTable(Array(30).fill(5)),
];

// The codes of literals and lengths, and of distances, that a block begins with.
function ownCodes(bits) {
  const literals = bits.take(5) + 257, distances = bits.take(5) + 1, some = bits.take(4) + 4, short = Array(19).fill(0);
  for (let n = 0; n < some; n++) short[ORDER[n]] = bits.take(3);
  const codes = codeTable(short), lengths = [];
  while (lengths.length < literals + distances) {
    const symbol = bits.symbol(codes);
    if (symbol < 16) { lengths.push(symbol); continue; }
    const again = symbol === 16 ? 3 + bits.take(2) : symbol === 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    lengths.push(...Array(again).fill(symbol === 16 ? lengths.at(-1) : 0));
  }
  return [codeTable(lengths.slice(0, literals)), codeTable(lengths.slice(literals))];
}

function gunzip(bytes) {
  const tail = new DataView(bytes.buffer, bytes.byteOffset + bytes.length - 8), made = new Uint8Array(tail.getUint32(4, true));
  const bits = new Bits(bytes);
  let out = 0, last = 0;
  while (!last) {
    last = bits.take(1);
    const kind = bits.take(2);
    if (kind === 0) {
      bits.toByte();
      const from = bits.at + 4, length = bytes[bits.at] | bytes[bits.at + 1] << 8;
      made.set(bytes.subarray(from, from + length), out);
      out += length;
      bits.at = from + length;
      continue;
    }
    const [literals, distances] = kind === 1 ? FIXED : ownCodes(bits);
    for (let symbol = bits.symbol(literals); symbol !== 256; symbol = bits.symbol(literals)) {
      if (symbol < 256) { made[out++] = symbol; continue; }
      const length = LENGTHS[symbol - 257] + bits.take(LONGER[symbol - 257]), far = bits.symbol(distances);
      const back = DISTANCES[far] + bits.take(FARTHER[far]);
      for (let n = 0; n < length; n++, out++) made[out] = made[out - back];
    }
  }
  if (out !== made.length || checksum(made) !== tail.getUint32(0, true)) throw new Error('data were changed');
  return made;
}

function checksum(bytes) {
  const table = Int32Array.from({ length: 256 }, (_, byte) => {
    for (let n = 0; n < 8; n++) byte = byte & 1 ? byte >>> 1 ^ 0xedb88320 : byte >>> 1;
    return byte;
  });
  let sum = -1;
  for (const byte of bytes) sum = table[(sum ^ byte) & 255] ^ sum >>> 8;
  return ~sum >>> 0;
}
