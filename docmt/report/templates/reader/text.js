// Words and their differences.

const segmenters = new Map();

/** The words, punctuation marks and blanks of a text, in order: together they are the text. */
function segments(text, lang) {
  if (!("Segmenter" in Intl)) return text.match(/\s+|[\p{L}\p{N}\p{M}]+|[^\s\p{L}\p{N}\p{M}]/gu) ?? [];
  if (!segmenters.has(lang)) segmenters.set(lang, new Intl.Segmenter(lang, { granularity: "word" }));
  return Array.from(segmenters.get(lang).segment(text), (part) => part.segment);
}

const isBlank = (text) => text.trim() === "";

/** Which of the words `a` are outside the longest common subsequence with `b`, as an array of booleans. */
function outsideCommon(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const outside = new Array(a.length).fill(true);
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      outside[i] = false;
      i += 1;
      j += 1;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i += 1;
    else j += 1;
  }
  return outside;
}

/** Ranges `[start, end]` of characters whose words are not in `other`; a blank between two such words belongs to them. */
function differences(text, other, lang) {
  const parts = segments(text, lang);
  const words = parts.filter((part) => !isBlank(part));
  const outside = outsideCommon(words, segments(other, lang).filter((part) => !isBlank(part)));
  const ranges = [];
  let place = 0;
  let word = 0;
  for (const part of parts) {
    const end = place + part.length;
    if (!isBlank(part) && outside[word++]) {
      const last = ranges.at(-1);
      if (last && isBlank(text.slice(last[1], place))) last[1] = end;
      else ranges.push([place, end]);
    }
    place = end;
  }
  return ranges;
}

/** A search as a regular expression that takes it literally and ignores case; null for an empty search. */
function searchFor(words) {
  return words.trim() ? new RegExp(words.trim().replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "giu") : null;
}

function found(text, search) {
  return search ? Array.from(text.matchAll(search), (hit) => [hit.index, hit.index + hit[0].length]) : [];
}

/** A text whose differences to `other` (null: none are shown), hits of the search and `expected` ranges are marked. */
function marked(text, lang, { other = null, search = null, expected = [] } = {}) {
  const differing = other === null ? [] : differences(text, other, lang);
  const hits = found(text, search);
  const bounds = [...new Set([0, text.length, ...differing.flat(), ...hits.flat(), ...expected.flat()])].sort((a, b) => a - b);
  const within = (ranges, place) => ranges.some(([start, end]) => start <= place && place < end);
  const pieces = bounds.slice(0, -1).map((start, i) => {
    const piece = text.slice(start, bounds[i + 1]);
    const names = [within(differing, start) && "differs", within(hits, start) && "hit", within(expected, start) && "expected"].filter(Boolean);
    return names.length ? make("mark", { class: names.join(" ") }, piece) : piece;
  });
  return make("span", { lang, dir: "auto", class: "text" }, pieces);
}

/** A number with a minus (U+2212), or a dash for a missing one. What rounds to zero has no minus. */
function formatNumber(value, digits = 1) {
  if (value === null || Number.isNaN(value)) return "–";
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : NaN);

/** Sorted copies of `things` by a number, those without one last; equal ones keep their order. */
function sortedBy(things, number) {
  const values = new Map(things.map((thing) => [thing, number(thing)]));
  const value = (thing) => (Number.isNaN(values.get(thing)) ? Infinity : values.get(thing));
  return [...things].sort((a, b) => (value(a) === value(b) ? 0 : value(a) < value(b) ? -1 : 1));
}
