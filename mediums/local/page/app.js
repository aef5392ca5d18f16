// Puts the parts together: what the room says goes to the stream and the panel, what is written goes to the room.

import { Composer } from "./composer.js";
import { $, make, write } from "./dom.js";
import { Panel } from "./panel.js";
import { Room } from "./socket.js";
import { Stream } from "./stream.js";

const STATES = { connected: "connected", waiting: "reconnecting…", locked: "locked: open the address that frontdesk printed" };
const LOOKS = { "/trace": "trace", "/code": "code", "/actions": "actions" };

const stream = new Stream();
let assistant = "Frontdesk";
let newest = 0;
let connected = false;

const room = new Room({
  state(state) {
    connected = state === "connected";
    $("connection").dataset.state = document.body.dataset.connection = state;
    write($("connection"), STATES[state]);
    stream.connection(connected);
    if (!connected) stream.typing(false);
  },
  hello(hello) {
    if (hello.newest < newest) stream.clear();
    ({ newest, assistant } = hello);
    stream.title = assistant;
    document.title = assistant;
    write($("assistant"), assistant);
    $("banner").replaceChildren(...hello.banner.map((line) => make("span", "", line)));
    $("box").placeholder = `Message ${assistant}`;
    if (room.position >= newest) stream.caughtUp();
  },
  post(post) {
    if (post.author === "assistant") stream.typing(false);
    stream.post(post);
    caughtUp(post);
  },
  decided(decided) {
    stream.decided(decided.ids, decided.silence ? `left alone: ${decided.silence}` : decided.passed_on);
    caughtUp(decided);
  },
  accepted: (accepted) => stream.accepted(accepted.id),
  refused(refused) {
    stream.refused(refused.id, refused.why);
    if (refused.said && !$("box").value) composer.fill(refused.said.text);
  },
  typing: (typing) => stream.typing(typing.on, assistant),
  actions: (actions) => panel.show(actions.actions),
});

const panel = new Panel(async (press) => {
  const answer = await room.ask(press);
  if (answer.type === "refused") stream.note("Not taken", "", answer.why);
});

const composer = new Composer(async (text, files) => {
  const [word, ...about] = text.split(/\s+/);
  if (!(word in LOOKS) || files.length) {
    stream.pending(room.say(text, files), connected);
    return;
  }
  const answer = await room.ask({ type: "look", what: LOOKS[word], about: about.join(" ") });
  stream.note(text, answer.html, answer.text ?? answer.why);
});

function caughtUp({ position }) {
  if (position >= newest) stream.caughtUp();
}

document.addEventListener("keydown", (event) => event.key === "Escape" && panel.toggle(false));
for (const one of room.unsent.frames.values()) stream.pending(one, false);
room.connect();
$("box").focus();
