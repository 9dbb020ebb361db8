// The stream that the address of the page names, as in page.html#STREAM, so that a link to it can be sent.
function streamInAddress({ streams }) {
  const written = location.hash.slice(1), names = new Set([written]);
  try { names.add(decodeURIComponent(written)); } catch { /* a name with a % of its own */ }
  return written ? streams.id.findIndex((id) => names.has(id)) : -1;
}

// What is said of an address that names nothing here; some name a part of the page, such as the streams.
function unknownAddress(index) {
  const written = location.hash.slice(1);
  if (!written || streamInAddress(index) >= 0 || document.getElementById(written)) return '';
  let name = written;
  try { name = decodeURIComponent(written); } catch { /* as it is written */ }
  return `No stream is named “${shorten(name, 60)}”. `;
}

let naming = 0;

// Name a stream in the address, once no other one is chosen for a while: browsers refuse to do so many times a second.
function nameInAddress(id) {
  clearTimeout(naming);
  naming = setTimeout(() => {
    try { history.replaceState(null, '', `#${encodeURIComponent(id)}`); } catch { /* a page within a page may have no address */ }
  }, 150);
}
