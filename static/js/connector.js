// A connector's page while an answer is on its way: asks again until it is there, and puts it in
// place. The focus stays on the same button. Without script, the page is reloaded by hand.
import { announce, tellTimes } from "./page.js";

const PAUSE_MS = 1_000;
const TRIES = 30;

function nameOf(element) {
  return element?.closest("form")?.getAttribute("action") ?? element?.id;
}

function put(old, fresh) {
  const held = old.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  old.replaceWith(fresh);
  tellTimes(fresh);
  for (const button of fresh.querySelectorAll("[data-copy]")) button.hidden = false;
  if (held === null) return;
  const buttons = [...fresh.querySelectorAll("button, a[id]")];
  (buttons.find((each) => nameOf(each) === held) ?? document.querySelector("h1")).focus();
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
