// The pages of the atlas. State lives in the address (#/page?…): a view can be shared and the back button works.
import { ask, drawing, foresee, leave, main, pause, place, tell, unreached, waiting } from "./base.js";

// Page → its file and function; the first question it asks, where that is known; whether it draws pictures.
const PAGES = {
  worlds: { file: "worlds", open: "worldsPage", asks: "worlds" },
  world: { file: "worlds", open: "worldPage", draws: true },
  circuits: { file: "circuits", open: "circuitsPage", draws: true },
  claims: { file: "claims", open: "claimsPage", asks: "claims" },
  training: { file: "training", open: "trainingPage", asks: "worlds", draws: true },
  decoding: { file: "decoding", open: "decodingPage", draws: true },
  sources: { file: "sources", open: "sourcesPage", asks: "sources" },
  cards: { file: "records", open: "cardsPage", asks: "cards", draws: true },
  lab: { file: "records", open: "labPage", draws: true },
};
const load = ({ file }) => import(`./pages/${file}.js`).catch(unreached);
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
    const about = Object.hasOwn(PAGES, page) ? PAGES[page] : PAGES.worlds;
    if (about.asks) foresee(about.asks);
    const [module] = await Promise.all([load(about), about.draws && drawing()]);
    if (mine !== visit) return;
    await module[about.open](state);
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
  countJobs();
  setTimeout(() => Promise.allSettled([drawing(), ...Object.values(PAGES).map(load)]), 300);
}); // ready for the next page
