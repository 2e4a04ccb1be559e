// The small language model of the decoding pages: its letters, the language that is wanted, the errors of the values.
import { choose, labelled, later, panel, slider } from "../base.js";

const RULES = [
  "as many a as b",
  "ends as it begins",
  "no letter twice in a row",
  "an even number of b",
  "exactly one b",
];

// The form of the two pages on a small language model; `change` gets all values.
export function gameForm(state, extra, change) {
  const tokens = choose(
      "tokens",
      [
        ["2", "a, b"],
        ["3", "a, b, c"],
      ],
      state.tokens ?? "2",
    ),
    rule = choose("rule", RULES, state.rule ?? RULES[0]);
  const [depth, depthField] = slider("depth", "Length", { min: 2, max: 6, step: 1, value: state.depth ?? 4 });
  const [error, errorField] = slider("error", "Error of the values", {
    min: 0,
    max: 2,
    step: 0.1,
    value: state.error ?? 0.5,
  });
  const [seed, seedField] = slider("seed", "Language model number", {
    min: 0,
    max: 20,
    step: 1,
    value: state.seed ?? 0,
  });
  const fields = { tokens, rule, depth, error, seed, ...extra.inputs };
  const values = () => Object.fromEntries(Object.entries(fields).map(([name, input]) => [name, input.value]));
  const soon = later(80, () => change(values()));
  for (const input of Object.values(fields)) input.addEventListener("input", soon);
  return [
    values,
    panel(
      "",
      ...extra.fields,
      labelled("Letters", tokens),
      labelled("The language: a string …", rule),
      depthField,
      errorField,
      seedField,
    ),
  ];
}
