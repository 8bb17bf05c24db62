// Keeps the focus in the page. The focused element may be removed: because it was pressed, or because the
// daemon or another page made the decision. Keys would then have no target, and Tab would start at the top.
import { focusPrompt } from "./use.ts";

const focusable = "button:not(:disabled), textarea, input, select, summary, a[href], [tabindex]";

/** Focuses the element nearest to the removed one, else the prompt. */
function focusNear(place: Node): void {
  for (let element = place as Element | null; element && !element.matches("main, .bottom, .page, body"); element = element.parentElement) {
    const candidates = element.matches("[tabindex]") ? [element] : element.querySelectorAll(focusable);
    for (const candidate of candidates as Iterable<HTMLElement>) {
      if (!candidate.checkVisibility()) continue;
      candidate.focus();
      return;
    }
  }
  focusPrompt();
}

export function keepFocus(): void {
  let last: HTMLElement | undefined;
  document.addEventListener("focusin", (event) => (last = event.target as HTMLElement));
  new MutationObserver((records) => {
    if (!document.hasFocus()) return; // the user is elsewhere, for example in VS Code's editor
    const focused = document.activeElement;
    const lost = focused === null || focused === document.body;
    for (const { type, target, removedNodes } of records) {
      if (type === "attributes") {
        if (lost || !target.contains(focused) || (!focused.matches(":disabled") && focused.checkVisibility())) continue;
      } else {
        if (!lost || !last || !target.isConnected || ![...removedNodes].some((node) => node.contains(last ?? null))) continue;
        last.focus(); // it may only have been moved
        if (document.activeElement === last) return;
      }
      return focusNear(target);
    }
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled", "hidden"] });
}
