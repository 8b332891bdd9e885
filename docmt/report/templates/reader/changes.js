// What changed between A and B: the sentences of all documents in which their translations differ.

/** The shortest runs of sentences that both A and B translate as a whole: single ones, or blocks. */
function unitsOf(document) {
  const [a, b] = pair();
  if (a < 0) return [];
  const cells = [document.runs[a], document.runs[b]];
  const starts = [...document.src.keys()].filter((i) => cells.every((ofRun) => ofRun[i] !== null));
  return starts.map((first, n) => {
    const end = starts[n + 1] ?? document.src.length;
    const [one, two] = cells.map((ofRun) => ofRun.slice(first, end).filter(Boolean));
    const [before, after] = [one, two].map((found) => found.map(([text]) => text).join(" "));
    const scores = [one, two].map((found) => mean(found.map(([, score]) => score)));
    const join = (sentences) => sentences.slice(first, end).join(" ");
    // The chrF of a text and the mean of its sentences are different measures.
    const change = one.length === 1 && two.length === 1 ? scores[1] - scores[0] : NaN;
    return { document, first, end, src: join(document.src), ref: join(document.ref), before, after, scores, single: [one, two].map((found) => found.length === 1), change };
  });
}

function showChanges() {
  const [a, b] = pair();
  const [src, tgt] = part().languages;
  const search = searchFor(state.q);
  const units = members().flatMap(unitsOf);
  const differing = units.filter(({ before, after }) => before !== after);
  const better = (sign) => differing.filter(({ change }) => sign * change > 0).length;
  const blocks = differing.filter(({ change }) => Number.isNaN(change)).length;
  const chosen = differing.filter(({ src, ref, before, after }) => !search || [src, ref, before, after].some((text) => found(text, search).length));
  const keys = { most: ({ change }) => -Math.abs(change), gained: ({ change }) => -change, lost: ({ change }) => change };
  const names = { A: a, B: b };
  const heads = ["sentence", "source", "reference", ...Object.entries(names).map(([letter, run]) => [...named(run), ` (${letter})`]), "change"];
  const body = make("tbody");
  inSteps(body, sortedBy(chosen, keys[state.change]), 100, ({ document, first, end, src: source, ref, before, after, scores, single, change }) => {
    const at = { view: "documents", at: document.id, sentence: `${first}`, sort: "order", q: "", change: DEFAULTS.change };
    const numbers = `${first + 1}${end > first + 1 ? `–${end}` : ""}`;
    const translation = (text, other, run, number) =>
      make("td", { "data-label": label(run) }, marked(text, tgt, { other, search }), make("span", { class: "score" }, `${single[number] ? "chrF" : "mean chrF"} ${formatNumber(scores[number])}`));
    return make(
      "tr",
      {},
      make("td", {}, make("a", { href: addressOf(at) }, `${document.id}, ${numbers}`)),
      make("td", { "data-label": "source" }, marked(source, src, { search })),
      make("td", { "data-label": "reference" }, marked(ref, tgt, { search })),
      translation(before, after, a, 0),
      translation(after, before, b, 1),
      make("td", { "data-label": "change of chrF", class: "number" }, `${change > 0 ? "+" : ""}${formatNumber(change)}`),
    );
  });
  const counts = `A and B differ in ${differing.length} of ${units.length} sentences: by chrF, ${better(1)} are better in B, ${better(-1)} in A${blocks ? `; blocks, which are not compared: ${blocks}` : ""}.`;
  const head = make("tr", {}, heads.map((name) => make("th", { scope: "col" }, name)));
  const table = make("table", { class: "sentences changes", style: `--columns: ${heads.length - 1}` }, make("thead", {}, head), body);
  return [
    make("h2", {}, "What changed"),
    make("p", { class: "caption" }, search ? `${counts} The search leaves ${chosen.length}.` : counts),
    make("div", { class: "scroll", tabindex: "0" }, table),
  ];
}
