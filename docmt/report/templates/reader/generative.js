// Items of generative test sets: what is expected, and the translation of the payload sentence by each system.

const isGenerative = (item) => item.expected !== undefined;

/** A text in parts (before, what was found, after; or the whole) with what was found marked. */
function withFound(parts, lang, search) {
  const start = parts[0].length;
  return marked(parts.join(""), lang, { search, expected: parts.length > 1 ? [[start, start + parts[1].length]] : [] });
}

/** The source sentences, and beside the payload what its translation must contain. */
function payloadTable(item) {
  const [src, tgt] = part().languages;
  const search = searchFor(state.q);
  const deciding = item.distance === null ? -1 : item.sentence - item.distance;
  const expected = () => [
    make("p", { class: "candidate right" }, make("span", { class: "number" }, "expected"), marked(item.expected, tgt, { search })),
    item.reference ? make("p", {}, withFound(item.reference, tgt, search)) : null,
  ];
  const rows = item.src.map((source, i) =>
    make(
      "tr",
      { class: i === item.sentence ? "focus" : i === deciding ? "deciding" : null },
      make("th", { scope: "row" }, `${i + 1}`),
      make("td", { "data-label": "source" }, marked(source, src, { search })),
      make("td", { "data-label": i === item.sentence ? "reference" : null }, i === item.sentence ? expected() : []),
    ),
  );
  const head = make("tr", {}, ["#", "source", "reference"].map((name) => make("th", { scope: "col" }, name)));
  return make("table", { class: "sentences", style: "--columns: 2" }, make("thead", {}, head), make("tbody", {}, rows));
}

function payloads(item) {
  const [, tgt] = part().languages;
  const search = searchFor(state.q);
  const head = ["System", `Sentence ${item.sentence + 1}`, ""].map((name) => make("th", { scope: "col" }, name));
  const rows = shownRuns().map((run) => {
    const { payload, right } = item.runs[run];
    return make(
      "tr",
      { class: right ? "right" : "wrong" },
      make("td", { class: "label" }, named(run)),
      make("td", { class: "written" }, withFound(payload, tgt, search)),
      make("td", {}, right ? "✓ right" : "✗ wrong"),
    );
  });
  return make("table", { class: "choices" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
}
