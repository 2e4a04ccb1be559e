// Decoding: a walk on the tree of prefixes, algorithms at equal cost, and the steps of parallel decoding.
import { element, main } from "../base.js";
import { raceTab } from "./race.js";
import { refineTab } from "./refine.js";
import { walkTab } from "./walk.js";

export async function decodingPage(state) {
  const tab = state.tab ?? "walk",
    open = { walk: walkTab, race: raceTab, refine: refineTab }[tab] ?? walkTab;
  const tabs = [
    ["walk", "A walk"],
    ["race", "A race"],
    ["refine", "In parallel"],
  ].map(([name, title]) =>
    element("a", { href: `#/decoding?tab=${name}`, "aria-current": name === tab ? "page" : null }, title),
  );
  const body = element("div", {});
  main.replaceChildren(
    element("h2", {}, "Decoding"),
    element("nav", { class: "tabs", "aria-label": "Parts" }, ...tabs),
    body,
  );
  await open(body, state);
}
