// The box in which a message is written. Enter sends, Shift+Enter begins a line; a draft survives a reload.

import { $ } from "./dom.js";
import { Attached } from "./files.js";

const DRAFT = "frontdesk.draft";
const HINT = "Enter sends · Shift+Enter for a new line · / for commands";
const COMMANDS = "/trace why it was answered so · /code the Python that ran · /actions what is in flight";

export class Composer {
  /** `send(text, files)` is called with what is not empty. */
  constructor(send) {
    this.box = $("box");
    this.send = send;
    this.attached = new Attached(() => this.changed());
    this.lastSent = "";
    this.waits = 0; // for so many files, of which one is still on its way; it goes when all are there
    this.box.value = sessionStorage.getItem(DRAFT) ?? "";
    this.box.addEventListener("input", () => {
      this.waits = 0; // there is more to say
      this.changed();
    });
    this.box.addEventListener("keydown", (event) => this.key(event));
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    document.addEventListener("keydown", (event) => this.shortcut(event));
    this.changed();
  }

  submit() {
    const text = this.box.value.trim();
    this.waits = this.attached.busy ? this.attached.entries.length : 0;
    if (this.waits || !(text || this.attached.any)) return;
    this.lastSent = text;
    const files = this.attached.take();
    this.fill("");
    this.send(text, files);
  }

  fill(text) {
    this.box.value = text;
    this.box.setSelectionRange(text.length, text.length);
    this.changed();
  }

  changed() {
    const text = this.box.value;
    sessionStorage.setItem(DRAFT, text);
    this.box.style.height = "auto";
    this.box.style.height = `${this.box.scrollHeight}px`;
    $("composer").querySelector(".send").disabled = this.attached.busy || !(text.trim() || this.attached.any);
    $("hint").textContent = text.startsWith("/") ? COMMANDS : HINT;
    if (this.waits && !this.attached.busy) {
      const whole = this.waits === this.attached.entries.length;
      this.waits = 0;
      if (whole) this.submit();
    }
  }

  key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "ArrowUp" && !this.box.value && this.lastSent) {
      event.preventDefault();
      this.fill(this.lastSent);
    } else if (event.key === "Escape") {
      this.box.blur();
      $("stream").focus();
    }
  }

  shortcut(event) {
    const writing = event.target.closest("input, textarea");
    if (event.key !== "/" || writing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.box.focus();
  }
}
