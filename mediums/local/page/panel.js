// The panel: what is in flight, and what may be done about it. Cards are kept and changed in place, so that a live
// change takes neither the focus nor a half-written answer away.

import { $, age, button, make, write } from "./dom.js";

const PHASES = { running: "running", paused: "paused", awaiting_input: "ready for more", hibernated: "asleep" };
const BUTTONS = { ask: "Ask", pause: "Pause", resume: "Resume", stop: "Stop" };
const SURE_FOR = 4000; // milliseconds in which a second press on Stop means it

export class Panel {
  constructor(press) {
    this.press = press;
    this.cards = new Map();
    $("strip").addEventListener("click", () => this.toggle());
    setInterval(() => this.tick(), 1000);
    this.show([]);
  }

  toggle(open = !$("panel").classList.contains("open")) {
    $("panel").classList.toggle("open", open);
    $("strip").setAttribute("aria-expanded", String(open));
    if (open) $("cards").querySelector(".question")?.scrollIntoView({ block: "nearest" });
  }

  show(actions) {
    this.actions = actions;
    const gone = new Set(this.cards.keys());
    for (const action of actions) {
      gone.delete(action.action);
      const card = this.cards.get(action.action) ?? new Card(action.action, this.press);
      this.cards.set(action.action, card);
      card.show(action);
      if (!card.element.isConnected) $("cards").append(card.element);
    }
    for (const key of gone) {
      this.cards.get(key).element.remove();
      this.cards.delete(key);
    }
    $("idle").hidden = actions.length > 0;
    $("panel").classList.toggle("empty", actions.length === 0);
    $("panel").classList.toggle("asks", actions.some((one) => one.questions?.length));
    this.tick();
  }

  tick() {
    for (const card of this.cards.values()) card.tick();
    const [first] = this.actions;
    const open = this.actions.reduce((sum, one) => sum + (one.questions?.length ?? 0), 0);
    const about = first && this.actions.length === 1 ? `${first.name} · ${state(first)} ${age(first.since)}` : `${this.actions.length} in flight`;
    write($("summary"), open ? `${about} · ${open === 1 ? "a question is" : `${open} questions are`} open` : about);
  }
}

function state(action) {
  return action.questions?.length ? "needs an answer" : PHASES[action.phase] ?? action.phase;
}

class Card {
  constructor(key, press) {
    this.key = key;
    this.press = press;
    this.questions = new Map();
    this.name = make("h3");
    this.state = make("span", "state");
    this.age = make("span", "age");
    this.about = make("p", "about");
    this.doing = make("p", "doing");
    this.asked = make("div", "questions");
    this.row = make("div", "row");
    this.element = make("li", "card", "", make("div", "head", "", this.name, make("p", "now", "", this.state, this.age)),
      this.about, this.doing, this.asked, this.row);
  }

  show(action) {
    this.action = action;
    this.element.dataset.phase = action.phase;
    this.element.classList.toggle("asks", Boolean(action.questions?.length));
    write(this.name, action.name);
    write(this.state, state(action));
    write(this.about, action.about);
    write(this.doing, action.doing ?? "");
    this.doing.hidden = !action.doing;
    this.showQuestions(action.questions ?? []);
    this.showButtons(action.can ?? []);
  }

  tick() {
    write(this.age, age(this.action.since));
  }

  showQuestions(questions) {
    const gone = new Set(this.questions.keys());
    for (const question of questions) {
      gone.delete(question.question);
      if (!this.questions.has(question.question)) {
        const form = this.question(question);
        this.questions.set(question.question, form);
        this.asked.append(form);
      }
    }
    for (const key of gone) {
      this.questions.get(key).remove();
      this.questions.delete(key);
    }
  }

  question(question) {
    const answer = (text) => this.do(form, { verb: "answer", question: question.question, text });
    const options = (question.options ?? []).map((option) => button("option", option, () => answer(option)));
    const form = inputForm("Another answer", "Answer", answer);
    form.classList.add("question");
    form.setAttribute("role", "group");
    form.setAttribute("aria-label", question.text);
    if (!options.length) form.querySelector("input").placeholder = "Your answer";
    form.prepend(make("p", "asks-what", question.text), make("div", "options", "", ...options));
    return form;
  }

  showButtons(can) {
    const shown = Object.keys(BUTTONS).filter((verb) => can.includes(verb));
    if (this.row.dataset.can === shown.join()) return;
    const focused = this.row.contains(document.activeElement) ? document.activeElement.dataset?.verb : null;
    this.row.dataset.can = shown.join();
    this.row.replaceChildren(...shown.map((verb) => this.button(verb)));
    if (focused) (this.row.querySelector(`[data-verb=${focused}]`) ?? this.row.querySelector("button"))?.focus();
  }

  button(verb) {
    const acts = { ask: () => this.ask(), stop: () => this.stop(element) };
    const element = button(`verb ${verb}`, BUTTONS[verb], acts[verb] ?? (() => this.do(element, { verb })));
    element.dataset.verb = verb;
    element.setAttribute("aria-label", `${BUTTONS[verb]} ${this.action.name}`);
    return element;
  }

  ask() {
    if (this.asking?.isConnected) return this.closeAsk();
    this.asking = inputForm(`Ask ${this.action.name}`, "Ask", async (text) => {
      await this.do(this.asking, { verb: "ask", text });
      this.closeAsk();
    });
    this.asking.classList.add("asking");
    this.asking.addEventListener("keydown", (event) => event.key === "Escape" && this.closeAsk());
    this.row.after(this.asking);
    this.asking.querySelector("input").focus();
  }

  closeAsk() {
    this.asking.remove();
    this.row.querySelector("[data-verb=ask]")?.focus();
  }

  /** What it has by then is reported, but it cannot be taken back: pressed twice. */
  stop(element) {
    if (element.classList.contains("sure")) return this.do(element, { verb: "stop" });
    element.classList.add("sure");
    element.textContent = "Stop it?";
    setTimeout(() => {
      element.classList.remove("sure");
      element.textContent = BUTTONS.stop;
    }, SURE_FOR);
  }

  /** Until the room has it, what was pressed cannot be pressed again. */
  async do(element, what) {
    const parts = element.matches("button") ? [element] : [...element.querySelectorAll("button, input")];
    parts.forEach((part) => (part.disabled = true));
    await this.press({ type: "press", action: this.key, ...what });
    parts.forEach((part) => (part.disabled = false));
  }
}

function inputForm(placeholder, label, act) {
  const input = make("input");
  Object.assign(input, { type: "text", placeholder, autocomplete: "off", maxLength: 4000 });
  input.setAttribute("aria-label", placeholder);
  const send = make("button", "verb", label);
  const form = make("form", "line", "", make("div", "answer", "", input, send));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text) {
      input.value = "";
      act(text);
    }
  });
  return form;
}
