// What the pages do beyond showing: follow the events, send forms without leaving, follow a task's output.
// Text of others reaches the page as text, or as HTML that the server has escaped and the browser has parsed
// without running anything.
"use strict";

const $ = (id) => document.getElementById(id);

function say(text, bad) {
  $("say").textContent = text;
  $("say").classList.toggle("bad", !!bad);
}

// --- times, in the zone of the browser

function localize(root) {
  const today = new Date().toDateString();
  for (const el of root.querySelectorAll("time[datetime]")) {
    const t = new Date(el.dateTime);
    const day = t.toDateString() === today ? "" : t.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" }) + " ";
    el.textContent = day + t.toLocaleTimeString([], { hourCycle: "h23" });
    el.title = t.toLocaleString([], { dateStyle: "full", timeStyle: "long" });
  }
}
localize(document);

// --- entering: the code stands in the part of the link that is sent nowhere

const enter = $("enter");
if (enter && location.hash.length > 1) {
  $("code").value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  enter.submit();
} else if (location.hash && !$(location.hash.slice(1))) { // who has entered before came here with a code all the same
  history.replaceState(null, "", location.pathname);
}

// --- lists that follow the host

const arrived = new Map(); // when a question appeared, by id of its element
const parts = [...document.querySelectorAll("[data-part]")];
for (const li of document.querySelectorAll(".question")) arrived.set(li.id, 0);

// load fetches a list as a document, in which nothing runs. What has not changed comes without its content.
function load(list) {
  return new Promise((done, failed) => {
    const x = new XMLHttpRequest();
    x.open("GET", "/part/" + list.dataset.part + "?" + (list.dataset.query || ""));
    x.setRequestHeader("X-Since", Math.max(0, ...[...list.children].map((li) => Number(li.dataset.v) || 0)));
    x.responseType = "document";
    x.onload = () => (x.status === 200 && x.response ? done(x.response) : failed(x.status));
    x.timeout = 10000;
    x.onerror = x.ontimeout = x.onabort = () => failed(0);
    x.send();
  });
}

const collapsing = 5000; // ms for which an answered question keeps its height

// merge makes a list what it is now, and leaves elements alone that have not changed: their focus, what is open
// in them and what was typed stay.
function merge(list, fresh) {
  let before = null;
  const keep = new Set();
  for (const now of fresh) {
    keep.add(now.id);
    let old = $(now.id);
    if (!old) {
      old = document.adoptNode(now);
      if (old.classList.contains("question")) {
        arrived.set(old.id, performance.now());
        notify(old.querySelector("h3").textContent, old.querySelector(".input code, .input pre, .field pre"));
      }
      list.insertBefore(old, before ? before.nextSibling : list.firstChild);
    } else if (old.dataset.v !== now.dataset.v) {
      const open = old.querySelector("details[open]"), focused = old.contains(document.activeElement), height = old.getBoundingClientRect().height;
      const fresh = document.adoptNode(now);
      if (open && fresh.querySelector("details")) fresh.querySelector("details").open = true;
      old.replaceWith(fresh);
      if (fresh.classList.contains("settled")) {
        fresh.style.minHeight = height + "px"; // what follows it stays in its place for a while
        setTimeout(() => { if (!list.matches(":hover")) fresh.style.minHeight = ""; }, collapsing);
      }
      if (focused) (fresh.querySelector("summary, button, a") || $("main")).focus({ preventScroll: true });
      old = fresh;
    }
    before = old;
  }
  // Settled questions stay under the pointer, so that a second click does not hit the next one.
  const held = list.dataset.part === "questions" && list.matches(":hover") && matchMedia("(hover: hover)").matches;
  for (const li of [...list.children]) if (!keep.has(li.id) && !(held && li.classList.contains("settled"))) li.remove();
}

for (const list of parts) {
  list.addEventListener("mouseleave", () => {
    for (const li of list.querySelectorAll(".settled")) li.style.minHeight = "";
  });
}

let loading = false, again = false, stale = false; // stale: a list could not be loaded, and is at the next beat
async function refresh() {
  if (loading) { again = true; return; }
  loading = true;
  do {
    again = stale = false;
    await Promise.all(parts.map(async (list) => {
      const query = list.dataset.query;
      try {
        const doc = await load(list);
        localize(doc);
        if (query === list.dataset.query) merge(list, [...doc.querySelectorAll("body > li")]); else again = true;
      } catch (status) {
        if (status === 401) link("lost", "signed out: reload"); else stale = true;
      }
    }));
  } while (again);
  loading = false;
}

// --- the filter of the calls, applied while it is filled in

const filter = $("filter");
if (filter) {
  let later;
  filter.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(() => {
      const query = new URLSearchParams(new FormData(filter)).toString();
      history.replaceState(null, "", "/?" + query);
      for (const list of parts) {
        if (!("query" in list.dataset)) continue;
        list.dataset.query = query;
        list.replaceChildren();
      }
      refresh();
    }, 150);
  });
}

// --- notifications of the desktop, of pages that are not looked at

const button = $("notify");
if (button && "Notification" in window && Notification.permission === "default") {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const answer = await Notification.requestPermission();
    button.hidden = answer !== "default";
    say(answer === "granted" ? "The desktop tells you of questions from now on." : "The browser does not let this page notify you.", answer !== "granted");
  });
}

function notify(title, what) {
  if (!("Notification" in window) || Notification.permission !== "granted" || document.hasFocus()) return;
  const note = new Notification(title, { body: what ? what.textContent.slice(0, 200) : "", tag: "toolhost" });
  note.onclick = () => { window.focus(); note.close(); };
}

let waiting = Number($("count-n") ? $("count-n").textContent : 0);
const title = document.title;
function count(n) {
  if (n > waiting && !parts.some((list) => list.dataset.part === "questions")) notify("A call waits for you.");
  if (n > waiting) $("call").textContent = n === 1 ? "A call waits for you." : n + " calls wait for you.";
  if (n === 0) $("call").textContent = "";
  waiting = n;
  $("count-n").textContent = n;
  $("count").hidden = n === 0;
  document.title = (n ? "(" + n + ") " : "") + title;
}

function link(state, text) {
  if ($("link-text").textContent === text) return; // nothing to draw anew with each beat
  $("link").dataset.state = state;
  $("link-text").textContent = text;
}

function heard(message) {
  if (message.kind === "lost") return link("lost", message.ended ? "stopped: reload" : "connecting…");
  link("live", "live");
  count(message.waiting);
  // Other hosts write to the history too, and do not tell.
  if (message.kind === "change" || stale || document.querySelector('[data-part="history"]')) refresh();
}

// One tab of a browser follows the host for all of them: a browser keeps few connections to one place.
if ($("link")) {
  const others = new BroadcastChannel("events");
  others.onmessage = (e) => heard(e.data);
  const tell = (message) => { heard(message); others.postMessage(message); };
  // It gives its turn up when the host refuses it for good, or else no tab that is opened later would follow.
  const follow = () => new Promise((done) => {
    const events = new EventSource("/events");
    for (const kind of ["change", "beat"]) events.addEventListener(kind, (e) => tell({ kind, waiting: Number(e.data) }));
    events.onerror = () => {
      const ended = events.readyState === EventSource.CLOSED;
      tell({ kind: "lost", ended });
      if (ended) done();
    };
  });
  if (navigator.locks) navigator.locks.request("events", follow); else follow();
}

// --- forms: sent in the background, unless they lead to another page

const textOf = (answer) => (answer.status === 401 ? "You are signed out: open a new link." : answer.text());

const bouncing = 600; // ms in which a new question takes no answer: a click on its way was not meant for it

document.addEventListener("submit", async (e) => {
  const form = e.target;
  if ("plain" in form.dataset) return;
  e.preventDefault();
  const question = form.closest(".question");
  if (question && performance.now() - arrived.get(question.id) < bouncing) return;
  const body = new URLSearchParams(new FormData(form, e.submitter));
  const buttons = (question || form).querySelectorAll("button");
  for (const b of buttons) b.disabled = true;
  try {
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { "X-Console": "1" } });
    say(await textOf(answer), !answer.ok);
    if (!answer.ok) for (const b of buttons) b.disabled = false; // it stands, unless the list takes it away
  } catch {
    say("The host does not answer. Nothing is known to have been done.", true);
    for (const b of buttons) b.disabled = false;
  }
  if (question) $("main").focus({ preventScroll: true });
  refresh();
});

// --- the output of a task

const output = $("output");
async function followOutput() {
  const most = 512 * 1024; // characters that are kept on the page
  let next = output.dataset.next;
  while (!("done" in output.dataset)) {
    const answer = await fetch("/tasks/" + output.dataset.key + "/output/" + next).catch(() => null);
    if (!answer || !answer.ok) {
      if (answer) return say(await textOf(answer), true);
      await new Promise((go) => setTimeout(go, 2000));
      continue;
    }
    const text = await answer.text();
    const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
    output.append(text);
    if (output.textContent.length > most) output.textContent = "[The beginning is left out.]\n" + output.textContent.slice(-most / 2);
    if (atEnd) output.scrollTop = output.scrollHeight;
    next = answer.headers.get("X-Task-Next");
    if (answer.headers.has("X-Task-Done")) {
      output.dataset.done = "";
      $("task-state").textContent = "ended: " + answer.headers.get("X-Task-Done");
      if ($("task-stop")) $("task-stop").remove();
    }
  }
}
// find marks what the search field holds, and shows the first or the next match.
let at = 0;
function find(step) {
  const wanted = $("find").value.toLowerCase(), matches = [];
  for (const node of wanted ? output.childNodes : []) {
    const text = node.textContent.toLowerCase();
    for (let i = text.indexOf(wanted); i >= 0 && matches.length < 10000; i = text.indexOf(wanted, i + wanted.length)) {
      const range = new Range();
      range.setStart(node, i);
      range.setEnd(node, Math.min(i + wanted.length, node.length));
      matches.push(range);
    }
  }
  at = matches.length ? (at + step + matches.length) % matches.length : 0;
  $("found").textContent = wanted ? (matches.length ? at + 1 + " of " : "") + matches.length + " found" : "";
  CSS.highlights.set("found", new Highlight(...matches));
  CSS.highlights.set("current", new Highlight(...matches.slice(at, at + 1)));
  if (matches.length) {
    const place = matches[at].getBoundingClientRect(), box = output.getBoundingClientRect();
    output.scrollTop += place.top - box.top - box.height / 2;
  }
}

if (output) {
  document.querySelector(".tools").hidden = false;
  $("find").addEventListener("input", () => { at = 0; find(0); });
  $("find").addEventListener("keydown", (e) => { if (e.key === "Enter") find(e.shiftKey ? -1 : 1); });
  $("find").hidden = !("highlights" in CSS);
  $("wrap").addEventListener("click", () => $("wrap").setAttribute("aria-pressed", output.classList.toggle("unwrapped") ? "false" : "true"));
  $("copy").addEventListener("click", () => navigator.clipboard.writeText(output.textContent).then(() => say("The output was copied."), () => say("The browser does not let this page copy.", true)));
  output.scrollTop = output.scrollHeight;
  followOutput();
}
