// Files: those that are attached to the next message, and how files of a message are shown. Sends no message.

import { $, button, make, write } from "./dom.js";

const MOST = 20; // of one message
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** What is attached: uploaded at once, so that sending is quick and a refusal is seen before it. */
export class Attached {
  /** `changed()` is called when there is more or less to send. */
  constructor(changed) {
    this.list = $("attached");
    this.changed = changed;
    this.entries = [];
    $("attach").addEventListener("click", () => $("files").click());
    $("files").addEventListener("change", () => {
      this.add($("files").files);
      $("files").value = "";
    });
    $("box").addEventListener("paste", (event) => this.add(event.clipboardData.files));
    for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => this.dragged(event));
    document.addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("dragging"));
  }

  get busy() {
    return this.entries.some((entry) => !entry.upload);
  }

  get any() {
    return this.entries.length > 0;
  }

  dragged(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // else the browser opens the file instead of the conversation
    document.body.classList.toggle("dragging", event.type === "dragover");
    if (event.type === "drop") this.add(event.dataTransfer.files);
  }

  add(files) {
    for (const file of files) this.upload(file);
  }

  async upload(file) {
    if (this.entries.length >= MOST) return this.refuse(file.name, `at most ${MOST} files at once`);
    const note = make("span", "size", "…");
    const entry = { item: make("li", "chip", "", make("span", "name", file.name), note) };
    const away = button("away", "×", () => this.remove(entry));
    away.setAttribute("aria-label", `Do not send ${file.name}`);
    entry.item.append(away);
    this.entries.push(entry);
    this.show(entry);
    try {
      const kind = file.type || "application/octet-stream";
      const answer = await fetch(`/files?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file, headers: { "Content-Type": kind } });
      if (!answer.ok) throw new Error(answer.status === 413 ? await answer.text() : `the room answered ${answer.status}`);
      entry.upload = await answer.json();
      write(note, size(entry.upload.size));
      this.changed();
    } catch (error) {
      this.remove(entry);
      this.refuse(file.name, error instanceof TypeError ? "it could not be handed over: too large, or no connection" : error.message);
    }
  }

  refuse(name, why) {
    const item = make("li", "chip refused", `${name} is not attached: ${why}`);
    const away = button("away", "×", () => this.drop(item));
    away.setAttribute("aria-label", "Close");
    item.append(away);
    this.show({ item });
  }

  remove(entry) {
    this.entries = this.entries.filter((other) => other !== entry);
    this.drop(entry.item);
  }

  show(entry) {
    this.list.append(entry.item);
    this.list.hidden = false;
    this.changed();
  }

  drop(item) {
    item.remove();
    this.list.hidden = !this.list.children.length;
    this.changed();
  }

  /** Those that are ready, which are then no longer attached. */
  take() {
    const uploads = this.entries.map((entry) => entry.upload);
    this.entries = [];
    this.list.replaceChildren();
    this.list.hidden = true;
    return uploads;
  }
}

/** Below a message; nothing where there are none. */
export function shown(files) {
  if (!files?.length) return [];
  return [make("ul", "files", "", ...files.map((file) => make("li", "", "", link(file))))];
}

function link(file) {
  const address = `/files/${file.digest}`;
  const label = `${file.name} · ${size(file.size)}`;
  const element = make("a", "file", PICTURES.includes(file.kind) ? "" : label);
  element.href = address;
  element.target = "_blank";
  element.rel = "noopener noreferrer";
  if (PICTURES.includes(file.kind)) {
    const picture = make("img");
    picture.alt = label;
    picture.loading = "lazy";
    picture.src = address;
    element.append(picture);
  } else {
    element.download = file.name;
  }
  return element;
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
