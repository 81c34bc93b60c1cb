// Which rows of the panel this browser hides, and whether the panel is collapsed. Kept per member
// and workspace in localStorage, never sent. A classic script in the head: while the page is still
// being parsed it hides what is hidden, so that no frame ever shows it. The rules (parse, holds,
// reconcile, entryOf) are pure.
const Preferences = (() => {
  const LONGEST = 500_000; // characters; a longer value is not ours
  const { user, workspace } = document.documentElement.dataset;
  const KEY = `overview:1:${user}:${workspace}`;
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const isText = (value) => value === undefined || typeof value === "string";
  const isEntry = (value) =>
    isObject(value) && [value.epoch, value.status, value.count].every(isText) &&
    /^\d{1,5000}$/.test(value.count ?? "0");

  // --- Rules ------------------------------------------------------------------------------

  // text: whatever is stored under our key. Anything that we would not have written is left out.
  function parse(text) {
    let stored = null;
    try {
      if (text && text.length <= LONGEST) stored = JSON.parse(text);
    } catch {
      // Not JSON: as good as nothing stored.
    }
    const entries = isObject(stored?.hidden) ? Object.entries(stored.hidden) : [];
    return {
      hidden: new Map(entries.filter(([, entry]) => isEntry(entry))),
      isCollapsed: stored?.collapsed === true,
    };
  }

  const serialise = ({ hidden, isCollapsed }) =>
    JSON.stringify({ hidden: Object.fromEntries(hidden), collapsed: isCollapsed });

  // What to remember of a row when it is hidden. An unavailable row has neither status nor count.
  const entryOf = ({ status, count, epoch }) => ({ status, count, epoch });

  // Whether the entry still hides this row. Counts are decimal text of any length, so BigInt. The
  // epoch changes each time the connector stopped being ready and came back.
  function holds(entry, row) {
    if (!entry || entry.epoch !== row.epoch || entry.status !== row.status) return false;
    if (row.status !== undefined || row.count === undefined) return true;
    return entry.count !== undefined && BigInt(row.count) <= BigInt(entry.count);
  }

  // The entries to keep, given all the rows that the server just sent. isComplete: no reading is
  // on its way, so a row that is not there is gone.
  function reconcile(hidden, rows, isComplete) {
    const sent = new Map(rows.map((row) => [row.key, row]));
    const isDown = (key) => sent.get(key.split("/")[0])?.status !== undefined;
    const kept = new Map();
    for (const [key, entry] of hidden) {
      const row = sent.get(key);
      if (!row && !isComplete && !isDown(key)) kept.set(key, entry);
      if (row && holds(entry, row)) kept.set(key, row.count === undefined ? entry : entryOf(row));
    }
    return kept;
  }

  // --- Store ------------------------------------------------------------------------------

  let latest = parse(null);
  let isStored = true; // False while storage is blocked or full: then the page's own copy holds.

  function load() {
    try {
      const text = localStorage.getItem(KEY);
      if (isStored) latest = parse(text);
    } catch {
      // Blocked: what this page knows is all there is.
    }
    return latest;
  }

  function save(preferences) {
    latest = preferences;
    try {
      localStorage.setItem(KEY, serialise(preferences));
      isStored = true;
    } catch {
      isStored = false;
    }
  }

  function change(edit) {
    const preferences = load();
    edit(preferences);
    save(preferences);
  }

  // --- Page -------------------------------------------------------------------------------

  let isRevealed = false; // Whether the hidden rows are listed at the panel's foot.

  const rowsIn = (root) => [...root.querySelectorAll("[data-row]")];
  const rowOf = ({ dataset: { key, level, status, count, epoch } }) => ({
    key, level, status, count, epoch,
  });

  // Bring the stored entries up to date with a panel fresh from the server.
  function settle(slot) {
    const before = load();
    const rows = rowsIn(slot).map(rowOf);
    const after = {
      ...before,
      hidden: reconcile(before.hidden, rows, slot.dataset.checking === "0"),
    };
    if (serialise(after) !== serialise(before)) save(after);
  }

  function dress(element, isAway, blank) {
    const button = element.querySelector("button") ?? element.appendChild(blank.cloneNode(true));
    const title = element.querySelector("bdi").textContent;
    button.id = `${element.id}-button`;
    button.ariaLabel = isAway ? `Show again: ${title}` : `Hide “${title}” until it changes`;
    button.title = button.ariaLabel;
    element.hidden = false;
  }

  // Put hidden rows into the list at the foot and the others into the main list, in the server's
  // order and with as few moves as possible; say what is shown. slot: in the page, or not yet.
  // Returns how many rows are shown of each level, how many of them unavailable, how many hidden.
  function apply(slot) {
    const tally = { critical: 0, warning: 0, info: 0, unavailable: 0, hidden: 0 };
    const find = (id) => slot.querySelector(`#attention${id}`);
    const panel = find("");
    if (!panel) return tally;
    const { hidden, isCollapsed } = load();
    const lists = [find("-list"), find("-hidden")];
    const next = lists.map((list) => list.firstElementChild);
    const blank = find("-row-button").content.firstElementChild;
    const rows = rowsIn(panel);
    rows.forEach((element, index) => (element.dataset.at ??= index));
    rows.sort((a, b) => a.dataset.at - b.dataset.at);
    let worst = null;
    for (const element of rows) {
      const row = rowOf(element);
      const isAway = holds(hidden.get(row.key), row);
      const isUnavailable = "unavailable" in element.dataset;
      tally[isAway ? "hidden" : isUnavailable ? "unavailable" : row.level] += 1;
      if (!isAway && !isUnavailable) worst ??= element;
      const list = Number(isAway);
      const isInPlace = next[list] === element;
      next.forEach((at, i) => at === element && (next[i] = element.nextElementSibling));
      if (!isInPlace) lists[list].insertBefore(element, next[list]);
      dress(element, isAway, blank);
    }
    isRevealed &&= tally.hidden > 0;
    const shown = rows.length - tally.hidden;
    panel.dataset.shown = shown;
    lists[0].hidden = isCollapsed || shown === 0;
    find("-foot").hidden = tally.hidden === 0 || (isCollapsed && shown > 0);
    lists[1].hidden = !isRevealed || find("-foot").hidden;
    find("-toggle").ariaExpanded = String(!isCollapsed);
    find("-unhide").ariaExpanded = String(isRevealed);
    find("-unhide").textContent = `Hidden (${tally.hidden}) – ${isRevealed ? "close" : "show"}`;
    find("-show-all").hidden = !isRevealed;
    summarise(find("-summary"), tally, isCollapsed && worst);
    return tally;
  }

  function summarise(summary, tally, worst) {
    const [icon, words] = summary.children;
    const count = (levels) => levels.filter((l) => tally[l]).map((l) => `${tally[l]} ${l}`);
    const parts = count(["critical", "warning", "info"]);
    words.textContent = (parts.length ? parts : count(["unavailable"])).join(" · ");
    icon.classList.toggle("absent", !worst);
    summary.dataset.level = worst ? worst.dataset.level : "";
    if (worst) icon.replaceChildren(worst.querySelector("use").cloneNode());
  }

  // Observers run before the next frame: rows that arrive with a first part of the page are hidden
  // at once, and the panel is brought in order as soon as the parser has left it.
  new MutationObserver((_, observer) => {
    const slot = document.getElementById("attention-slot");
    if (slot?.nextElementSibling) {
      observer.disconnect();
      settle(slot);
      apply(slot);
    } else if (slot) {
      const { hidden, isCollapsed } = load();
      for (const row of rowsIn(slot)) row.hidden = holds(hidden.get(row.dataset.key), rowOf(row));
      const list = document.getElementById("attention-list");
      if (list) list.hidden = isCollapsed;
    }
  }).observe(document, { childList: true, subtree: true });

  return {
    KEY, parse, serialise, entryOf, holds, reconcile, settle, apply,
    hide: (row) => change(({ hidden }) => hidden.set(row.dataset.key, entryOf(rowOf(row)))),
    showAgain: (row) => change(({ hidden }) => hidden.delete(row.dataset.key)),
    showAll: () => change(({ hidden }) => hidden.clear()),
    collapse: () => change((preferences) => (preferences.isCollapsed = !preferences.isCollapsed)),
    reveal: () => (isRevealed = !isRevealed),
  };
})();
