// The list of traces: names the reader's time zone, and says how many calls are newer than it.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const newer = document.getElementById("newer");

// What was entered before stays in the zone that it was entered in.
for (const name of document.querySelectorAll("[data-zone]")) {
  if (name.dataset.zone !== "given") name.textContent = zone;
}
const field = document.querySelector("input[name=tz]");
if (!document.querySelector("[data-zone=given]")) field.value = zone;

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(newer.dataset.newer);
    const line = (await answer.text()).trim();
    // The list itself stays: rows that move under a pointer get the wrong click.
    if (answer.ok && !answer.redirected && newer.innerHTML.trim() !== line) newer.innerHTML = line;
  } catch {
    // Offline or signed out: the next look may succeed.
  }
}

if (newer.dataset.newer) setInterval(look, 15_000);
