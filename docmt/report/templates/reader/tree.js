// The dependency tree of a document: its EDUs from top to bottom, arcs from heads to dependents on their left.

const SVG = "http://www.w3.org/2000/svg";
const LANE = 9; // pixels between arcs

function shape(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** A lane for the arcs of each head: shorter ones nearer to the text, and none across another. */
function lanes(heads) {
  const spans = new Map();
  heads.forEach((head, edu) => {
    if (head === null || head < 0) return;
    const [low, high] = spans.get(head) ?? [head, head];
    spans.set(head, [Math.min(low, edu), Math.max(high, edu)]);
  });
  const placed = new Map();
  for (const [head, [low, high]] of sortedBy([...spans], ([, span]) => span[1] - span[0])) {
    const beside = [...placed].filter(([other]) => spans.get(other)[0] <= high && spans.get(other)[1] >= low);
    placed.set(head, Math.max(-1, ...beside.map(([, lane]) => lane)) + 1);
  }
  return placed;
}

/** EDUs (`[sentence, text, head, relation]`) with their arcs. */
function drawTree(edus, lang, search) {
  const heads = edus.map(([, , head]) => head);
  const placed = lanes(heads);
  const width = 14 + LANE * (1 + Math.max(-1, ...placed.values()));
  const rows = edus.map(([sentence, text, head, relation], edu) => {
    const place = head === null ? null : head < 0 ? "root" : `${relation} → ${head + 1}`;
    const opens = edu === 0 || sentence !== edus[edu - 1][0];
    return make(
      "li",
      { class: opens ? "opens" : null, "data-edu": edu, onmouseenter: () => relate(edu), onmouseleave: () => relate(null) },
      make("span", { class: "number" }, `${edu + 1}`),
      marked(text, lang, { search }),
      place && make("span", { class: "relation" }, place),
    );
  });
  const svg = shape("svg", { class: "arcs", width, "aria-hidden": "true" });
  const drawing = make("div", { class: "tree" }, svg, make("ol", { style: `margin-left: ${width}px` }, rows));

  function relate(edu) {
    rows.forEach((row, other) => row.classList.toggle("related", edu !== null && (heads[edu] === other || heads[other] === edu)));
    for (const path of svg.children) path.classList.toggle("related", edu !== null && [path.dataset.head, path.dataset.edu].includes(`${edu}`));
  }

  function drawArcs() {
    const middle = (edu) => rows[edu].offsetTop + rows[edu].offsetHeight / 2;
    svg.setAttribute("height", drawing.offsetHeight);
    svg.replaceChildren(
      ...heads.flatMap((head, edu) => {
        if (head === null || head < 0) return [];
        const x = width - 10 - LANE * placed.get(head);
        const [from, to] = [middle(head) + (edu < head ? -4 : 4), middle(edu)];
        const path = shape("path", { d: `M${width - 2},${from} H${x} V${to} H${width - 2} m-4,-3 l4,3 l-4,3` });
        Object.assign(path.dataset, { head, edu });
        return [path];
      }),
    );
  }
  new ResizeObserver(drawArcs).observe(drawing);
  return drawing;
}
