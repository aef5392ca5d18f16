// Small tools: elements, ids, times. Knows nothing of the room.

export const $ = (id) => document.getElementById(id);

/** An element with a class and text; children may follow. Text is never parsed. */
export function make(tag, kind = "", text = "", ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

export function button(kind, text, act) {
  const element = make("button", kind, text);
  element.type = "button";
  element.addEventListener("click", act);
  return element;
}

/** Changes a text only when it is another one: nothing is announced or drawn again for the same. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Also where `crypto.randomUUID` is missing: on plain HTTP in a local network. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function age(since) {
  const seconds = Math.max(0, Math.floor((Date.now() - new Date(since)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")}`;
}

export const clock = (at) => at.toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });

export function day(at) {
  const today = new Date();
  const days = Math.round((new Date(today).setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  const year = at.getFullYear() === today.getFullYear() ? undefined : "numeric";
  return at.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", year });
}
