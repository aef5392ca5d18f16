// The connection: comes back by itself, and says again what was not accepted. Draws nothing.

import { newId } from "./dom.js";

const FIRST_PAUSE = 250, LONGEST_PAUSE = 4000, ANSWER_WITHIN = 8000; // milliseconds
const KEPT = "frontdesk.say.";

/** What was said and is not accepted yet, in the browser's storage: a reload loses nothing. Each under a key of its own. */
class Unsent {
  constructor() {
    this.frames = new Map();
    try {
      const keys = Object.keys(localStorage).filter((key) => key.startsWith(KEPT));
      const kept = keys.map((key) => JSON.parse(localStorage.getItem(key)));
      for (const one of kept.sort((a, b) => a.at - b.at)) this.frames.set(one.id, one);
    } catch (error) {
      console.warn("unsent messages will not outlive this page:", error.message);
    }
  }

  add(id, text, files) {
    const one = { id, text, files, at: Date.now() };
    this.frames.set(id, one);
    try {
      localStorage.setItem(KEPT + id, JSON.stringify(one));
    } catch (error) {
      console.warn("this message will not outlive this page:", error.message);
    }
    return one;
  }

  remove(id) {
    const one = this.frames.get(id);
    this.frames.delete(id);
    try {
      localStorage.removeItem(KEPT + id);
    } catch {
      return one; // it was never stored either
    }
    return one;
  }
}

/** `on[kind](frame)` is called for each frame, `on.state("connected" | "waiting" | "locked")` for the connection. */
export class Room {
  constructor(on) {
    this.on = on;
    this.unsent = new Unsent();
    this.asked = new Map(); // presses and looks: their frames, and whom to tell
    this.position = 0;
    this.pause = FIRST_PAUSE;
    addEventListener("online", () => this.connect());
    document.addEventListener("visibilitychange", () => document.hidden || this.connect());
  }

  get open() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  say(text, files) {
    const one = this.unsent.add(newId(), text.toWellFormed?.() ?? text, files);
    this.send(asFrame(one));
    return one;
  }

  /** Resolves with the room's answer: accepted, looked or refused. */
  ask(frame) {
    const whole = { id: newId(), ...frame };
    return new Promise((resolve) => {
      this.asked.set(whole.id, { whole, resolve });
      this.send(whole);
    });
  }

  send(frame) {
    if (!this.open) return;
    this.socket.send(JSON.stringify(frame));
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.socket.close(), ANSWER_WITHIN); // a socket can be dead and not know it
  }

  connect() {
    if (this.socket && this.socket.readyState <= WebSocket.OPEN) return;
    clearTimeout(this.retry);
    const socket = (this.socket = new WebSocket(`ws://${location.host}/socket`));
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", after: this.position, medium: "web" }));
    socket.onmessage = (event) => this.hear(JSON.parse(event.data));
    socket.onclose = () => this.lost();
  }

  async lost() {
    clearTimeout(this.waiting);
    this.on.state(this.pause === LONGEST_PAUSE && (await isLocked()) ? "locked" : "waiting");
    this.retry = setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  hear(frame) {
    if (frame.type === "hello") this.entered(frame);
    if (frame.position && (frame.type === "post" || frame.type === "decided")) {
      if (frame.position <= this.position) return;
      this.position = frame.position;
    }
    if (["accepted", "refused", "looked"].includes(frame.type)) this.answered(frame);
    if (frame.type === "post") this.unsent.remove(frame.id);
    this.on[frame.type]?.(frame);
  }

  entered(hello) {
    this.pause = FIRST_PAUSE;
    if (hello.newest < this.position) this.position = 0; // another room: it tells all it has
    this.on.state("connected");
    for (const one of this.unsent.frames.values()) this.send(asFrame(one));
    for (const { whole } of this.asked.values()) this.send(whole);
  }

  answered(frame) {
    clearTimeout(this.waiting);
    frame.said = this.unsent.remove(frame.id);
    this.asked.get(frame.id)?.resolve(frame);
    this.asked.delete(frame.id);
  }
}

function asFrame({ id, text, files }) {
  return { type: "say", id, text, files: files ?? [] };
}

async function isLocked() {
  try {
    return (await fetch("/", { cache: "no-store" })).status === 401;
  } catch {
    return false; // nobody is there
  }
}
