import { render } from "preact";
import { App } from "./app";
import { keepFocus } from "./lib/focus";
import { startClock, watchForPeople } from "./lib/load";
import { followAddress } from "./lib/router";
import { answerTabs, resume } from "./lib/session";
import { loadSettings } from "./lib/settings";
import "./style/index.css";

loadSettings();
startClock();
watchForPeople();
followAddress();
answerTabs();
const root = document.getElementById("app");
if (root) keepFocus(root);
if (root) resume().then(() => render(<App />, root));
