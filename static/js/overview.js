// The overview's panel in the page: hide and show rows, follow the server live, keep the reader's
// focus, pointer and scroll where they are. The server says only "changed"; the panel itself comes
// from the view that rendered the page. One file, for each import would be one more request.
import { announce, serverNow, tellTimes } from "./page.js";

const HOLD_MS = 5_000; // changes of order wait for the pointer no longer than this
const NEWS_MS = 10_000; // between two announcements of news
const NEWS_ROWS = 3; // rows read out by name in one announcement
const SPREAD_MS = 400; // so that a push does not bring every open page at once
const SILENCE_MS = 75_000; // the server ticks every 30 s
const OPENING_MS = 10_000;
const BLIP_MS = 1_000; // a break shorter than this is not shown
const POLL_AFTER_MS = 30_000;
const POLL_MS = 60_000;
const RETRY_MS = { first: 1_000, longest: 30_000 };

const live = document.getElementById("live");
const slot = document.getElementById("attention-slot");
const favicon = document.getElementById("favicon");
const TITLE = document.title;
const byId = (id) => document.getElementById(`attention-${id}`);
const isVisible = (element) => Boolean(element?.getClientRects().length);

function render() {
  const { critical, warning } = Preferences.apply(slot);
  const badge = critical + warning;
  const icon = favicon.dataset[critical ? "critical" : warning ? "warning" : "plain"];
  document.title = badge ? `(${badge}) ${TITLE}` : TITLE;
  if (favicon.getAttribute("href") !== icon) favicon.href = icon;
}

// --- Focus ----------------------------------------------------------------------------------

// Where the focus is, to be given back after the list changed.
function focusPlace() {
  const element = document.activeElement;
  const list = element?.closest(".attention__list");
  const row = element?.closest("[data-row]");
  const rows = list ? [...list.children] : [];
  return { element, list, rows, at: rows.indexOf(row), isInside: slot.contains(element) };
}

// Give the focus back: to the same element, else to the same part of the nearest row still in
// its list (after it, then before), else to the foot, the heading's button, the page's heading.
function refocus({ element, list, rows, at, isInside }) {
  if (!isInside || (element === document.activeElement && isVisible(element))) return;
  const isThere = (row) => row.parentElement === list && isVisible(row);
  const near = rows.slice(at + 1).find(isThere) ?? rows.slice(0, Math.max(at, 0)).findLast(isThere);
  const part = element.matches("a") ? near?.querySelector("a") : null;
  const stays = element.closest(".attention__list") === list ? element : null;
  const places = [stays, part, near?.querySelector("button"), byId("unhide"), byId("toggle")];
  (places.find(isVisible) ?? document.querySelector("h1")).focus({ preventScroll: !isVisible(near) });
}

// --- Acts -----------------------------------------------------------------------------------

function moveRow(row) {
  const isHidden = row.parentElement === byId("hidden");
  const place = focusPlace();
  if (isHidden) Preferences.showAgain(row);
  else Preferences.hide(row);
  render();
  refocus(place);
  announce(isHidden ? "Shown again." : "Hidden until it changes.");
}

slot.addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  const row = button?.closest("[data-row]");
  if (!button) return;
  if (row) moveRow(row);
  else if (button === byId("toggle")) Preferences.collapse();
  else if (button === byId("unhide")) Preferences.reveal();
  else Preferences.showAll();
  const place = focusPlace();
  render();
  refocus(place);
  news(); // What the reader did is no news.
});

addEventListener("storage", ({ key }) => {
  if (key !== null && key !== Preferences.KEY) return;
  render();
  news();
});

// --- News -----------------------------------------------------------------------------------

let known = new Map();
let unsaid = new Set();
let isCleared = false;
let saidAt = -Infinity;

// Which rows at critical or warning are new, came back or rose since the last call.
function news() {
  const before = known;
  known = new Map();
  const fresh = [];
  for (const row of slot.querySelectorAll("[data-row]")) {
    const { key, level, status, count, unavailable } = row.dataset;
    const was = before.get(key);
    const isShown = row.parentElement === byId("list");
    known.set(key, { status, count: count ?? was?.count, isShown });
    const hasRisen = count !== undefined && BigInt(count) > BigInt(was?.count ?? 0);
    const isNews = !was?.isShown || was.status !== status || hasRisen;
    if (isShown && isNews && level !== "info" && unavailable === undefined) fresh.push(key);
  }
  isCleared = before.size > 0 && known.size === 0 && slot.dataset.checking === "0";
  return fresh;
}

function tellNews() {
  if (Date.now() - saidAt < NEWS_MS) return;
  const shown = [...(byId("list")?.children ?? [])].filter((row) => unsaid.has(row.dataset.key));
  const names = shown.map((row) => row.querySelector(".row__link").textContent.slice(0, 150));
  const more = names.splice(NEWS_ROWS).length;
  if (more) names.push(`${more} more`);
  if (names.length) announce(`Needs attention: ${new Intl.ListFormat("en").format(names)}.`);
  else if (isCleared) announce("Nothing needs attention.");
  if (names.length || isCleared) saidAt = Date.now();
  unsaid = new Set();
  isCleared = false;
}

// --- Live changes ---------------------------------------------------------------------------

let isPressed = false;
let waiting = null; // the newest panel, held back while the pointer is over the list
let heldUntil = 0;

slot.addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (isPressed = false));

const isHeld = () =>
  isPressed ||
  (matchMedia("(hover: hover)").matches && slot.querySelector(".attention__list:hover") !== null);

// Make `old` like `fresh`, and keep every node that can stay, with its focus. Children with an id
// are the same wherever they were; the others are matched by their place.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType === Node.TEXT_NODE) return (old.data = fresh.data);
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const wanted = new Set([...fresh.children].map((child) => child.id));
  for (const child of [...old.children]) if (!wanted.has(child.id)) child.remove();
  let at = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    const isAlike = at && !at.id && at.nodeName === node.nodeName;
    const same = node.id ? document.getElementById(node.id) : isAlike ? at : null;
    // One that moved down is moved alone, not all the others up past it.
    if (same && at !== same && at?.nextSibling === same) {
      move(old, at, null);
      at = same;
    }
    if (same !== at || !same) move(old, same ?? node, at);
    else at = at.nextSibling;
    if (same) morph(same, node);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function move(parent, node, before) {
  // Where the browser knows it, moveBefore keeps the focus; refocus() gives it back elsewhere.
  if (parent.moveBefore && node.isConnected) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function putInPlace() {
  const fresh = waiting;
  waiting = null;
  const place = focusPlace();
  const bottom = slot.getBoundingClientRect().bottom;
  morph(slot, fresh);
  render();
  refocus(place);
  if (bottom < 0 && !CSS.supports("overflow-anchor", "auto")) {
    scrollBy(0, slot.getBoundingClientRect().bottom - bottom);
  }
  for (const key of news()) unsaid.add(key);
  tellNews();
}

// Numbers change at once also under the pointer; rows come, go and move when it has left.
function changeNumbers(fresh) {
  for (const row of slot.querySelectorAll("[data-row]")) {
    const next = fresh.querySelector(`#${row.id}`)?.cloneNode(true);
    if (!next) continue;
    next.dataset.at = row.dataset.at;
    morph(row, next);
  }
}

function release() {
  if (!waiting) return;
  if (isHeld() && Date.now() < heldUntil) setTimeout(release, 200);
  else putInPlace();
}

function update(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  const fresh = box.content.querySelector("#attention-slot");
  if (!fresh) return;
  tellTimes(fresh);
  Preferences.settle(fresh);
  Preferences.apply(fresh);
  const isFirst = !waiting;
  waiting = fresh;
  if (!isHeld()) return putInPlace();
  changeNumbers(fresh);
  if (isFirst) {
    heldUntil = Date.now() + HOLD_MS;
    release();
  }
}

// --- Fetching -------------------------------------------------------------------------------

let version = Number(slot.dataset.version);
let fetchedAt = Date.now();
let fetching = null;
let isWanted = false;
let spread = null;

async function fetchPanel() {
  const response = await fetch(live.dataset.panel, {
    cache: "no-cache", // asks with the ETag of what the browser has
    redirect: "manual", // the only redirect is to the sign-in page
    signal: AbortSignal.timeout(OPENING_MS),
  });
  if (response.type === "opaqueredirect" || response.status === 401) return finish(4401);
  if (response.status === 403 || response.status === 404) return finish(4403);
  if (!response.ok) return;
  update(await response.text());
  fetchedAt = Date.now();
  version = Number((waiting ?? slot).dataset.version);
}

// One fetch at a time, and at most one waiting behind it.
function refresh() {
  isWanted = true;
  fetching ??= (async () => {
    while (isWanted) {
      isWanted = false;
      // A failed fetch is made good by the next tick, open or poll.
      await fetchPanel().catch(() => {});
    }
    fetching = null;
  })();
}

function hear({ data }) {
  heardAt = Date.now();
  if (JSON.parse(data).version <= version || spread) return;
  spread = setTimeout(() => {
    spread = null;
    refresh();
  }, Math.random() * SPREAD_MS);
}

// --- The connection -------------------------------------------------------------------------

let socket = null;
let isOpen = false;
let hasBeenOpen = false;
let openedAt = 0;
let heardAt = 0;
let downSince = Date.now();
let retryAt = 0;
let attempts = 0;
let isBreakTold = false;
let ended = null;

function connect() {
  heardAt = Date.now();
  socket = new WebSocket(new URL(live.dataset.socket, location.href.replace(/^http/, "ws")));
  socket.onopen = () => {
    isOpen = true;
    openedAt = heardAt = Date.now();
    if (hasBeenOpen) refresh(); // Whatever was pushed meanwhile is lost: look again.
    hasBeenOpen = true;
    step();
  };
  socket.onmessage = hear;
  socket.onclose = ({ code }) => drop(code);
}

function drop(code) {
  socket.onopen = socket.onmessage = socket.onclose = null;
  socket.close();
  socket = null;
  if (code === 4401 || code === 4403) return finish(code);
  const now = Date.now();
  if (isOpen) downSince = now;
  // A socket that opens and breaks at once is no better than one that does not open.
  if (isOpen && now - openedAt > RETRY_MS.longest) attempts = 0;
  isOpen = false;
  retryAt = now + Math.random() * Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** attempts++);
  show();
}

function finish(code) {
  ended = code === 4401 ? "Signed out. Sign in again" : "You no longer have access";
  if (socket) drop();
  announce(ended);
  show();
}

// Once a second: every decision about the connection is taken here, from facts and the clock.
function step() {
  if (ended) return;
  const now = Date.now();
  const isReachable = navigator.onLine && !document.hidden;
  if (socket && now - heardAt > (isOpen ? SILENCE_MS : OPENING_MS)) drop();
  if (!socket && isReachable && now >= retryAt) connect();
  const isPolling = !isOpen && now - downSince > POLL_AFTER_MS;
  // What time alone changes nobody may be there to push, e.g. a count that ends.
  const hasEnded = serverNow() > Date.parse(slot.dataset.until) && now - fetchedAt >= NEWS_MS;
  if (isReachable && (hasEnded || (isPolling && now - fetchedAt >= POLL_MS))) refresh();
  if (!isOpen && !isBreakTold && now - downSince > NEWS_MS) {
    isBreakTold = true;
    announce("Live updates stopped. Reconnecting.");
  } else if (isOpen && isBreakTold) {
    isBreakTold = false;
    announce("Live again.");
  }
  tellNews();
  show();
}

function stateNow() {
  const down = Date.now() - downSince;
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  const last = `last updated ${clock.format(Math.max(fetchedAt, heardAt))}`;
  if (ended) return ["ended", ended];
  if (!navigator.onLine) return ["offline", `Offline – ${last}`];
  if (isOpen) return ["live", "Live"];
  if (down > POLL_AFTER_MS) return ["polling", "Checking every minute"];
  if (!hasBeenOpen) return ["connecting", "Connecting…"];
  return down > BLIP_MS ? ["reconnecting", `Reconnecting… ${last}`] : ["live", "Live"];
}

function show() {
  const [state, words] = stateNow();
  if (live.dataset.state === state && live.textContent === words) return;
  live.dataset.state = state;
  const text = document.createElement(state === "ended" ? "a" : "span");
  if (state === "ended") text.href = ended.startsWith("Signed") ? live.dataset.signIn : "/";
  text.textContent = words;
  const mark = document.getElementById(`live-${state === "offline" ? "offline" : "dot"}`);
  live.replaceChildren(...(state === "ended" ? [] : [mark.content.cloneNode(true)]), text);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || ended) return;
  retryAt = 0;
  if (Date.now() - fetchedAt > POLL_MS) refresh();
  step();
});
addEventListener("online", () => {
  retryAt = 0;
  if (!ended) refresh();
  step();
});
addEventListener("offline", step);

render();
news();
step();
setInterval(step, 1_000);
