// Items of suites with their context: what each system chose and how clearly, or what it wrote.

/** By how many nats the right candidate is more probable than the best other one; 1 or 0 for generative items; NaN without a run. */
function clearness(item, run) {
  if (run < 0) return NaN;
  if (isGenerative(item)) return Number(isRight(item, run));
  const scores = item.runs[run].scores.map((score) => score ?? -Infinity);
  return scores[item.correct] - Math.max(...scores.filter((_, i) => i !== item.correct));
}

const isRight = (item, run) => run >= 0 && item.runs[run].right;

const MARGINS = "Log probabilities of the candidates in nats. The margin is that of the right one over the best other one: above 0 the system is right.";

const OUTCOMES = {
  "": () => true,
  right: (item, a) => isRight(item, a),
  wrong: (item, a) => !isRight(item, a),
  won: (item, a, b) => isRight(item, a) && !isRight(item, b),
  lost: (item, a, b) => !isRight(item, a) && isRight(item, b),
  differ: (item, a, b) => isRight(item, a) !== isRight(item, b),
};

const FILTERS = { phenomenon: "phenomenon", distance: "range", kind: "kind" }; // what of an item a filter compares

/** The values of a filter in this suite, as choices. */
function valuesOf(key) {
  const values = [...new Set(members().map((item) => item[FILTERS[key]]).filter((value) => value !== null))];
  values.sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : `${a}` < `${b}` ? -1 : 1));
  return [["", "any"], ...values.map((value) => [`${value}`, `${value}`])];
}

function chosenItems() {
  const search = searchFor(state.q);
  const [a, b] = pair();
  return members().filter(
    (item) =>
      Object.entries(FILTERS).every(([key, fact]) => state[key] === "" || `${item[fact]}` === state[key]) &&
      OUTCOMES[state.outcome](item, a, b) &&
      (!search || [item.id, ...item.src, ...targetsOf(item)].some((text) => found(text, search).length)),
  );
}

/** The target sentences of an item, to search in. */
function targetsOf(item) {
  if (!isGenerative(item)) return item.candidates.flat();
  return [item.expected, ...[item.reference ?? [], ...shownRuns().map((run) => item.runs[run].payload)].map((parts) => parts.join(""))];
}

function itemEntries() {
  const [a, b] = pair();
  const runs = [a, b].filter((run, i) => run >= 0 && (i === 0 || run !== a));
  const change = (item) => clearness(item, b) - clearness(item, a);
  return sortedBy(chosenItems(), sortKeys(clearness, change)[state.list]).map((item) => ({
    id: item.id,
    notes: [item.phenomenon, ...(item.distance === null ? [] : [`distance ${item.distance}`]), runs.map((run) => verdict(item, run)).join(" / ")],
  }));
}

function verdict(item, run) {
  if (isGenerative(item)) return isRight(item, run) ? "✓" : "✗";
  const margin = clearness(item, run);
  return `${isRight(item, run) ? "✓" : "✗"} ${Number.isFinite(margin) ? formatNumber(margin, 2) : "∞"}`;
}

function itemSummary() {
  const chosen = chosenItems();
  if (!chosen.length) return "";
  const share = (run) => `${label(run)} ${formatNumber((100 * chosen.filter((item) => isRight(item, run)).length) / chosen.length)} %`;
  return `Right in these ${chosen.length} items: ${shownRuns().map(share).join(", ") || "–"}.`;
}

function showItem(item) {
  const facts = [item.phenomenon, item.kind, item.distance === null ? null : `distance ${item.distance}`].filter((fact) => fact !== null);
  const chosen = itemSummary();
  return [
    make("h2", {}, item.id),
    make("p", { class: "caption" }, `${facts.join(", ")}. ${chosen}`),
    make("div", { class: "scroll", tabindex: "0" }, isGenerative(item) ? payloadTable(item) : contextTable(item)),
    make("h3", {}, isGenerative(item) ? "What the systems wrote" : "What the systems chose"),
    make("p", { class: "caption" }, isGenerative(item) ? "What is expected is marked where a translation has it." : MARGINS),
    make("div", { class: "scroll", tabindex: "0" }, isGenerative(item) ? payloads(item) : choices(item)),
  ];
}

/** The sentences of an item; where the candidates differ, all of them, the right one first. */
function contextTable(item) {
  const [src, tgt] = part().languages;
  const search = searchFor(state.q);
  const differing = item.src.map((_, i) => new Set(item.candidates.map((candidate) => candidate[i])).size > 1);
  const deciding = item.distance === null ? -1 : differing.indexOf(true) - item.distance;
  const order = [item.correct, ...item.candidates.keys()].filter((n, i) => i === 0 || n !== item.correct);
  const rows = item.src.map((source, i) => {
    const shown = differing[i] ? order : [item.correct];
    const other = item.candidates[order[1]][i];
    const targets = shown.map((n) =>
      make(
        "p",
        { class: differing[i] ? (n === item.correct ? "candidate right" : "candidate") : null },
        differing[i] ? make("span", { class: "number" }, `${n + 1}${n === item.correct ? " ✓" : ""}`) : null,
        marked(item.candidates[n][i], tgt, { search, other: !differing[i] ? null : n === item.correct ? other : item.candidates[item.correct][i] }),
      ),
    );
    const name = differing[i] ? "focus" : i === deciding ? "deciding" : null;
    return make(
      "tr",
      { class: name },
      make("th", { scope: "row" }, `${i + 1}`),
      make("td", { "data-label": "source" }, marked(source, src, { search })),
      make("td", { "data-label": "target" }, targets),
    );
  });
  const head = make("tr", {}, ["#", "source", "target"].map((name) => make("th", { scope: "col" }, name)));
  return make("table", { class: "sentences", style: "--columns: 2" }, make("thead", {}, head), make("tbody", {}, rows));
}

function choices(item) {
  const names = item.candidates.map((_, n) => `candidate ${n + 1}${n === item.correct ? " ✓" : ""}`);
  const head = ["System", ...names, "Margin", ""].map((name) => make("th", { scope: "col" }, name));
  const rows = shownRuns().map((run) => {
    const { scores, right } = item.runs[run];
    const margin = clearness(item, run);
    return make(
      "tr",
      { class: right ? "right" : "wrong" },
      make("td", { class: "label" }, named(run)),
      scores.map((score) => make("td", { class: "number" }, score === null ? "−∞" : formatNumber(score, 2))),
      make("td", { class: "number" }, Number.isFinite(margin) ? formatNumber(margin, 2) : "∞"),
      make("td", {}, right ? "✓ right" : "✗ wrong"),
    );
  });
  return make("table", { class: "choices" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
}
