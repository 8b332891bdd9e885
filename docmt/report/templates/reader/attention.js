// What a system looked at in the source while it wrote a word, by part of its attention; shown below the sentence.

/** The instance of a run's attention that has a sentence of a document, if any. */
const attended = (document, run, sentence) => document.attention?.[run]?.find(({ first, src }) => first <= sentence && sentence < first + src.length);

const isOpen = (run, sentence) => state.attention === data.runs[run].key && state.sentence === `${sentence}`;

/** A button at a translation that opens its attention, or closes it; where there is none, nothing. */
function attentionButton(document, run, sentence) {
  if (!attended(document, run, sentence)) return null;
  const toggle = () => {
    go({ attention: isOpen(run, sentence) ? "" : data.runs[run].key, sentence: `${sentence}`, word: "" });
    byId(`sentence-${sentence}`).querySelector(`.attend[data-run="${run}"]`).focus({ preventScroll: true });
  };
  return make("button", { type: "button", class: "attend", "data-run": run, "aria-expanded": `${isOpen(run, sentence)}`, onclick: toggle }, "attention");
}

/** A row below a sentence: its translation as words to choose from, and the source under the chosen one. */
function attentionRow(document, run, sentence, columns) {
  const [src, tgt] = part().languages;
  const instance = attended(document, run, sentence);
  const before = instance.tgt.slice(0, sentence - instance.first).flat().length;
  const shown = make("div", { "aria-live": "polite" });
  const choose = (number) => {
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", other === number));
    shown.replaceChildren(...lookedAt(instance, before + number, src));
  };
  const buttons = instance.tgt[sentence - instance.first].map((text, number) =>
    make("button", { type: "button", class: "word", "aria-pressed": "false", onclick: () => {
      state.word = `${number}`;
      history.replaceState(null, "", address());
      choose(number);
    } }, text),
  );
  if (buttons[state.word]) choose(Number(state.word));
  const hint = "Choose a word (a token of the model): marked are the six source words that the last layer of the decoder attended to most when it wrote the word, in percent, the mean over heads; sentences without one are left out.";
  const words = make("p", { lang: tgt, dir: "auto" }, named(run), ": ", buttons.flatMap((button) => [button, " "]));
  return make("tr", { class: "attention" }, make("td", { colspan: columns }, make("p", { class: "caption" }, hint), words, shown));
}

/** The source of an instance for each part of the attention, with the weights of one target word. */
function lookedAt(instance, word, lang) {
  const names = instance.parts;
  const gate = instance.gate ? [make("p", { class: "caption" }, `Gate: ${instance.gate[word]} % ${names[0]}, ${100 - instance.gate[word]} % ${names[1]}.`)] : [];
  return gate.concat(
    names.map((name) => {
      const weights = new Map(instance.weights[name][word]);
      let place = 0;
      const sentences = instance.src.map((words, i) => {
        const first = place;
        place += words.length;
        const row = words.flatMap((text, j) => {
          const percent = weights.get(first + j);
          const attributes = percent === undefined ? {} : { class: "looked", style: `--share: ${percent / 100}`, "data-percent": percent };
          return [make("span", attributes, text), " "];
        });
        const isSeen = words.some((_, j) => weights.has(first + j));
        return isSeen ? make("p", { lang, dir: "auto" }, make("span", { class: "number" }, `${instance.first + i + 1} `), row) : null;
      });
      return make("div", {}, make("h3", {}, name), sentences);
    }),
  );
}
