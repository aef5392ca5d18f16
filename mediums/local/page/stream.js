// The stream of messages: what was said, on which medium, and what came of it. Sends nothing.

import { $, button, clock, day, make, write } from "./dom.js";
import { shown } from "./files.js";

const TOGETHER = 3 * 60_000; // milliseconds within which one author's messages share a heading
const KEPT = 1500; // messages in the page; older ones are only in the room
const NEAR = 80; // pixels from the end within which the stream follows
const TYPING_FOR = 120_000; // milliseconds, if nobody says that it has ended

export class Stream {
  constructor() {
    this.box = $("stream");
    this.list = $("posts");
    this.byId = new Map();
    this.marks = new Map(); // may be heard before their post
    this.unseen = 0;
    this.follows = true; // as of the last scroll, for when the box itself changes its size
    $("newer").addEventListener("click", () => this.toEnd());
    document.addEventListener("visibilitychange", () => document.hidden || this.countUnseen(0));
    new ResizeObserver(() => this.follows && this.toEnd()).observe(this.box);
    this.box.addEventListener("scroll", () => {
      this.follows = this.nearEnd();
      if (this.follows) $("newer").hidden = true;
    });
  }

  clear() {
    this.list.replaceChildren();
    this.byId.clear();
    this.marks.clear();
    this.last = undefined;
  }

  /** Read aloud only what is new, not the history. */
  caughtUp() {
    this.box.setAttribute("aria-live", "polite");
    $("welcome").hidden = this.list.children.length > 0;
  }

  post(post) {
    const item = this.byId.get(post.id)?.item ?? make("li");
    const at = new Date(post.at);
    this.dayOf(at);
    const joins = this.last && this.last.author === post.author && this.last.medium === post.medium &&
      at - new Date(this.last.at) < TOGETHER && !post.pressed && !this.last.pressed;
    this.last = post;
    item.className = `post ${post.author}${joins ? " joined" : ""}${post.pressed ? " pressed" : ""}`;
    item.dataset.id = post.id;
    const body = make("div", post.html ? "body markdown" : "body");
    if (post.html) {
      body.innerHTML = post.html; // made safe by the room; and no script but our own runs here
      guardLinks(body);
    } else {
      body.textContent = post.pressed ? pressedText(post) : post.text;
    }
    item.replaceChildren(heading(post, at), ...(body.textContent ? [body] : []), ...shown(post.files));
    this.byId.set(post.id, { item, text: post.text });
    this.put(item, true);
    this.showMark(post.id);
    if (post.author === "assistant" && document.hidden) this.countUnseen(this.unseen + 1);
  }

  /** Said, and not yet accepted: it stays at the end until it is. */
  pending(one, connected) {
    const note = make("p", "mark", connected ? "sending…" : "waits for the connection");
    const item = make("li", "post you pending", "", ...(one.text ? [make("div", "body", one.text)] : []), ...shown(one.files), note);
    item.dataset.id = one.id;
    this.byId.set(one.id, { item, text: one.text, note });
    this.put(item, false);
    this.toEnd();
  }

  connection(connected) {
    for (const { item, note } of this.byId.values()) {
      if (note && item.classList.contains("pending")) write(note, connected ? "sending…" : "waits for the connection");
    }
  }

  /** Its post follows, unless it is so old that it is no longer told. */
  accepted(id) {
    const known = this.byId.get(id);
    if (!known?.item.classList.contains("pending")) return;
    known.item.classList.remove("pending");
    known.note.remove();
  }

  refused(id, why) {
    const known = this.byId.get(id);
    if (!known) return;
    known.item.className = "post you refused";
    write(known.note, `not taken: ${why}`);
  }

  decided(ids, mark) {
    for (const id of ids) {
      this.marks.set(id, mark);
      this.showMark(id);
    }
  }

  showMark(id) {
    const known = this.byId.get(id);
    if (!known || !this.marks.has(id)) return;
    const mark = this.marks.get(id);
    this.keeping(() => {
      known.item.querySelector(".mark")?.remove();
      if (mark) known.item.append(make("p", "mark", mark));
    });
  }

  /** Only here, and gone with the page: what was looked at. */
  note(title, html, text) {
    const body = make("div", html ? "body markdown" : "body", html ? "" : text);
    if (html) {
      body.innerHTML = html;
      guardLinks(body);
    }
    const item = make("li", "note", "", make("p", "meta", title), body);
    const away = button("away", "×", () => item.remove());
    away.setAttribute("aria-label", `Close ${title}`);
    item.append(away);
    this.put(item, false);
    this.toEnd();
    this.last = undefined;
  }

  typing(on, name) {
    clearTimeout(this.stops);
    this.keeping(() => {
      $("typing").hidden = !on;
      write($("typist"), on ? `${name} is typing` : "");
    });
    if (on) this.stops = setTimeout(() => this.typing(false), TYPING_FOR);
  }

  put(item, beforePending) {
    const first = beforePending ? this.list.querySelector(".pending") : null;
    const followed = this.keeping(() => {
      if (first !== item || !item.isConnected) this.list.insertBefore(item, first);
      $("welcome").hidden = true;
    });
    if (!followed) $("newer").hidden = false;
    this.forgetOldest();
  }

  forgetOldest() {
    while (this.list.children.length > KEPT) {
      this.byId.delete(this.list.firstChild.dataset.id);
      this.list.firstChild.remove();
    }
  }

  dayOf(at) {
    const label = day(at);
    if (label === this.lastDay && this.list.children.length) return;
    this.lastDay = label;
    this.last = undefined;
    this.put(make("li", "day", label), true);
  }

  nearEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < NEAR;
  }

  /** Makes a change and stays at the end, if that is where the reader was. */
  keeping(change) {
    const follows = this.nearEnd();
    change();
    if (follows) this.toEnd();
    return follows;
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
    $("newer").hidden = true;
  }

  countUnseen(count) {
    this.unseen = count;
    document.title = count ? `(${count}) ${this.title}` : this.title;
  }
}

function heading(post, at) {
  const time = make("time", "", clock(at));
  time.dateTime = post.at;
  time.title = at.toLocaleString();
  return make("p", "meta", "", make("b", "", post.author === "you" ? "You" : post.name), make("span", "medium", post.medium), time);
}

function pressedText(post) {
  return post.text ? `${post.pressed}: ${post.text}` : post.pressed;
}

function guardLinks(body) {
  for (const link of body.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
}
