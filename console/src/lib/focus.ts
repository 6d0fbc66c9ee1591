/** Where the keyboard is: a control that goes away or waits takes the focus with it, and this brings it back. */

const FOCUSABLE = "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex='0']";
// A view that was just opened takes the focus to its heading first.
const PATIENCE_MS = 60;

/** The control nearest to where a control was: the first one of its closest ancestor that is still there. */
function nearest(places: readonly Element[]): HTMLElement | null {
  for (const place of places) {
    if (!place.isConnected || place === document.body) continue;
    const control = place.querySelector<HTMLElement>(FOCUSABLE);
    if (control) return control;
  }
  return document.querySelector<HTMLElement>("h1");
}

function ancestorsOf(element: Element): Element[] {
  const places: Element[] = [];
  for (let place = element.parentElement; place; place = place.parentElement) places.push(place);
  return places;
}

/** Keep the focus within `root` while controls are removed, replaced or disabled for a moment. */
export function keepFocus(root: Element): void {
  let control: HTMLElement | null = null;
  let places: Element[] = [];
  let wasDisabled = false;
  root.addEventListener("focusin", (event) => {
    control = event.target as HTMLElement;
    places = ancestorsOf(control);
    wasDisabled = false;
  });
  // Who clicks beside all controls wants none of them to have the focus.
  root.addEventListener("pointerdown", (event) => {
    if (!(event.target as Element).closest(FOCUSABLE)) control = null;
  });
  const bringBack = () => {
    if (!control || (document.activeElement && document.activeElement !== document.body)) return;
    if (!control.isConnected) nearest(places)?.focus({ preventScroll: true });
    else if (wasDisabled && !control.matches(":disabled")) control.focus({ preventScroll: true });
  };
  const observer = new MutationObserver(() => {
    if (!control || document.activeElement !== document.body) return;
    // A control that is there and enabled was left on purpose.
    wasDisabled ||= control.matches(":disabled");
    if (wasDisabled || !control.isConnected) setTimeout(bringBack, PATIENCE_MS);
  });
  observer.observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
}
