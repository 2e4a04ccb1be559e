// The pages of the atlas. State lives in the address (#/page?…): a view can be shared and the back button works.
import { ask, drawing, leave, main, pause, place, tell, waiting } from "./base.js";
import { circuitsPage } from "./pages/circuits.js";
import { claimsPage } from "./pages/claims.js";
import { decodingPage } from "./pages/decoding.js";
import { cardsPage, labPage } from "./pages/records.js";
import { sourcesPage } from "./pages/sources.js";
import { trainingPage } from "./pages/training.js";
import { worldPage, worldsPage } from "./pages/worlds.js";

const PAGES = {
  worlds: worldsPage,
  world: worldPage,
  circuits: circuitsPage,
  claims: claimsPage,
  training: trainingPage,
  decoding: decodingPage,
  sources: sourcesPage,
  cards: cardsPage,
  lab: labPage,
};
const TEXT = new Set(["worlds", "claims", "sources"]); // pages without drawings
const TITLES = { world: "worlds" };
let visit = 0;

async function open() {
  leave();
  const { page, state } = place(),
    mine = (visit += 1);
  main.dataset.ready = "";
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.getAttribute("href") === `#/${TITLES[page] ?? page}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page} · SandLab atlas`;
  main.replaceChildren(waiting());
  try {
    if (page in PAGES && !TEXT.has(page)) await drawing();
    await (PAGES[page] ?? worldsPage)(state);
    if (mine === visit) main.dataset.ready = "yes";
  } catch (problem) {
    if (mine === visit) tell(problem);
  }
}

// How many jobs are not done, beside the link to the lab. Jobs end when no page has asked about them for a while.
let counting = false;
async function countJobs() {
  if (counting) return;
  counting = true;
  let alive = 1;
  while (alive) {
    const { jobs } = await ask("/jobs", { signal: null }).catch(() => ({ jobs: [] }));
    alive = jobs.filter((job) => job.alive).length;
    document.getElementById("running").textContent = alive ? `${alive}` : "";
    if (alive) await pause(3000);
  }
  counting = false;
}
window.addEventListener("job", countJobs);
window.addEventListener("hashchange", open);
document.querySelector("a.skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
}); // the address is the page's
open().then(() => {
  setTimeout(drawing, 300);
  countJobs();
}); // ready for the next page
