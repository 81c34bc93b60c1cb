// A connector's page while an answer is on its way: asks again until it is there, and puts it in
// place. The focus stays on what has it, and what was opened stays open. Without script, the page
// is reloaded by hand.
import { announce, tellTimes } from "./page.js";

const PAUSE_MS = 1_000;
const TRIES = 30;
const PRESSED = "button, a[href], summary, [tabindex]";

// What the same thing is called before and after: what it leads to, else what it says.
function nameOf(element) {
  const place = element.closest("form")?.getAttribute("action") ?? element.getAttribute("href");
  return place ?? element.ariaLabel ?? element.textContent;
}

const sectionOf = (element) => element.closest("section")?.getAttribute("aria-labelledby");

function put(old, fresh) {
  const focused = document.activeElement;
  const held = old.contains(focused) ? nameOf(focused) : null;
  const opened = [...old.querySelectorAll("details[open] > summary")].map(nameOf);
  old.replaceWith(fresh);
  tellTimes(fresh);
  for (const button of fresh.querySelectorAll("[data-copy]")) button.hidden = false;
  for (const summary of fresh.querySelectorAll("summary")) {
    summary.parentElement.open = opened.includes(nameOf(summary));
  }
  if (held === null) return;
  const same = [...fresh.querySelectorAll(PRESSED)].filter((each) => nameOf(each) === held);
  // A problem and "Manage" may offer the same.
  const near = same.find((each) => sectionOf(each) === sectionOf(focused));
  (near ?? same[0] ?? document.querySelector("h1")).focus();
}

async function look() {
  const old = document.getElementById("connector");
  const answer = await fetch(location.pathname, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("connector");
  if (fresh.dataset.state !== old.dataset.state) {
    document.getElementById("standing").replaceWith(page.getElementById("standing"));
    put(old, fresh);
    if (fresh.dataset.said !== old.dataset.said) announce(fresh.dataset.said);
  }
  return "pending" in fresh.dataset;
}

async function follow(triesLeft) {
  let isPending = true;
  try {
    isPending = await look();
  } catch {
    // Offline for a moment; the next try may do.
  }
  if (isPending && triesLeft > 1) setTimeout(follow, PAUSE_MS, triesLeft - 1);
}

if ("pending" in document.getElementById("connector").dataset) {
  setTimeout(follow, PAUSE_MS, TRIES);
}
