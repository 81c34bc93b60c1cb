// What every page has: times in the reader's zone, copy buttons, the workspace filter, passwords
// that can be shown, forms that are sent once. Each one only adds to a page that works without.

const announcer = document.getElementById("announcer");
// The server's clock against this browser's: ages are counted on the server's.
const SKEW_MS = Date.parse(document.documentElement.dataset.now) - Date.now();
const SENT_MS = 10_000;
const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60]];
const ages = new Intl.RelativeTimeFormat("en");
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function announce(text) {
  // A screen reader says nothing when the text stays the same.
  announcer.textContent = announcer.textContent === text ? `${text}\u00a0` : text;
}

export const serverNow = () => Date.now() + SKEW_MS;

function ageOf(then) {
  const seconds = (serverNow() - then) / 1000;
  const unit = UNITS.find(([, length]) => seconds >= length);
  return unit ? ages.format(-Math.floor(seconds / unit[1]), unit[0]) : "just now";
}

export function tellTimes(root) {
  for (const time of root.querySelectorAll("time")) {
    const then = Date.parse(time.dateTime);
    const isRelative = "relative" in time.dataset;
    if (isRelative) time.title = exact.format(then);
    const text = isRelative ? ageOf(then) : exact.format(then);
    if (time.textContent !== text) time.textContent = text;
  }
}

async function copy(source) {
  const isField = "value" in source;
  try {
    await navigator.clipboard.writeText(isField ? source.value : source.textContent);
  } catch {
    // No clipboard outside https: the old way copies what is selected.
    if (isField) source.select();
    else getSelection().selectAllChildren(source);
    document.execCommand("copy");
  }
  announce("Copied.");
}

function press({ target }) {
  const button = target.closest("[data-copy], [data-reveal]");
  if (!button) return;
  const other = document.querySelector(button.dataset.copy ?? button.dataset.reveal);
  if ("copy" in button.dataset) return copy(other);
  other.type = other.type === "password" ? "text" : "password";
  button.ariaPressed = String(other.type === "text");
}

function filter({ target }) {
  if (!target.dataset.filter) return;
  const wanted = target.value.trim().toLocaleLowerCase();
  for (const item of document.querySelector(target.dataset.filter).children) {
    item.hidden = !item.textContent.toLocaleLowerCase().includes(wanted);
  }
}

// A second click on a button must not send its form twice; the button stays where the focus is.
function send(event) {
  const form = event.target;
  if (form.getAttribute("method") !== "post" || event.defaultPrevented) return;
  if ("sent" in form.dataset) return event.preventDefault();
  form.dataset.sent = "";
  const button = event.submitter;
  if (button) button.ariaDisabled = "true";
  if (button?.dataset.busy) button.textContent = button.dataset.busy;
  // An answer that does not come must not lock the form.
  setTimeout(() => {
    delete form.dataset.sent;
    if (button) button.ariaDisabled = null;
  }, SENT_MS);
}

tellTimes(document);
setInterval(tellTimes, 30_000, document);
for (const element of document.querySelectorAll("[data-copy], [data-reveal], .menu__filter")) {
  element.hidden = false;
}
document.addEventListener("click", press);
document.addEventListener("input", filter);
document.addEventListener("submit", send);
// Back to a page that the browser kept: its forms may be sent again.
addEventListener("pageshow", (event) => event.persisted && location.reload());
document.querySelector(".errors")?.focus();
// On a narrow screen the tabs scroll: the current one is in sight.
const tab = document.querySelector(".tabs [aria-current]");
if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft;
