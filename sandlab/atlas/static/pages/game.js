// Guessing the next letter of a fresh example, against the oracle and against a model that was kept.
import { ask, element, joined, letters, panel, told, view } from "../base.js";

const ROUNDS = 10,
  LONGEST = 40;
const NOTHING = "What this world asks for is not its next letter: there is nothing to guess letter by letter.";
const likeliest = (law) => law.indexOf(Math.max(...law));

export function gamePanel(facts, name, now, remember) {
  const settings = JSON.stringify(now.settings);
  const board = element("div", { id: "board" });
  const score = element("p", { id: "score", "aria-live": "polite" });
  const rival = rivalChoice(name, now, remember);
  let game;
  const begin = told(async () => {
    const seed = Math.floor(Math.random() * 1e6);
    const fresh = await view("world", { name, settings, seed, examples: 1 });
    const row = fresh.rows[0].slice(0, LONGEST);
    const text = joined(row, facts.letters);
    const found = await (rival.value
      ? view("guess", { kept: rival.value, text })
      : view("predict", { name, settings, text }));
    if (!found.probs || found.probs.length < 3 || !facts.follows) {
      board.replaceChildren(element("p", { class: "muted" }, NOTHING));
      return;
    }
    const right = { you: 0, "the oracle": 0, ...(found.model ? { "the model": 0 } : {}) };
    game = {
      row,
      laws: { "the oracle": found.probs, "the model": found.model },
      at: Math.min(3, row.length - 2),
      right,
      rounds: 0,
    };
    score.textContent = "";
    turn(0);
  });
  function turn(focused) {
    const over = game.rounds >= ROUNDS || game.at >= game.row.length - 1;
    const keys = facts.answers
      .slice(0, 30)
      .map((letter, number) => element("button", { onclick: () => guess(number) }, letter));
    board.replaceChildren(
      letters(game.row.slice(0, game.at + 1), facts.letters),
      over ? element("p", {}, "Finished.") : element("div", { class: "keys" }, ...keys),
    );
    keys[focused]?.focus({ preventScroll: true }); // the keys are new, the keyboard stays on the same letter
  }
  function guess(number) {
    const truth = game.row[game.at + 1];
    for (const who of Object.keys(game.right))
      game.right[who] += (who === "you" ? number : likeliest(game.laws[who][game.at])) === truth;
    const chance = (who) => `${who} gave it ${(100 * game.laws[who][game.at][truth]).toFixed(0)} %`;
    const points = Object.entries(game.right).map(([who, right]) => `${who} ${right}`);
    const others = Object.keys(game.right).filter((who) => who !== "you");
    game.rounds += 1;
    game.at += 1;
    score.textContent = `Right: ${points.join(", ")}, of ${game.rounds}. It was ${facts.letters[truth]}; ${others.map(chance).join(", ")}.`;
    turn(number);
  }
  return panel(
    "Guess the next letter",
    element(
      "div",
      { class: "row" },
      element("div", { class: "field" }, element("label", { for: "rival" }, "Against"), rival),
      element("button", { id: "play", onclick: begin }, `Play ${ROUNDS} rounds`),
    ),
    board,
    score,
  );
}

// The models that were kept of this world with these settings.
function rivalChoice(name, now, remember) {
  const rival = element("select", { id: "rival" }, element("option", { value: "" }, "the oracle alone"));
  const same = (each) => each.world === name && written(each.settings) === written(now.settings);
  const option = (each) => {
    const loss = each.loss == null ? "" : ` (loss ${each.loss.toFixed(3)})`;
    return element(
      "option",
      { value: each.name, selected: each.name === now.against },
      `the oracle and a kept ${each.model}${loss}`,
    );
  };
  ask("/kept")
    .then(({ kept }) => rival.append(...kept.filter(same).map(option)))
    .catch(() => {});
  rival.addEventListener("change", () => {
    now.against = rival.value;
    remember(name, now);
  });
  return rival;
}
const written = (settings) =>
  JSON.stringify(
    Object.entries(settings)
      .filter(([, value]) => value !== "")
      .map(([key, value]) => [key, String(value)])
      .sort(),
  );
