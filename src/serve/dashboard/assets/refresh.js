// Fetches a live page again by itself and puts the new figures in place, while nobody is in the middle of something.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  const button = document.querySelector("#live");
  if (!main || !button) return;
  const every = 5000;
  let isOn = sessionStorage.getItem("live") !== "off";
  let isBusy = false;

  const show = () => {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(isOn));
    button.querySelector("span").textContent = isOn ? "Live" : "Paused";
  };

  // Whoever writes, or has marked a text to copy it, is not disturbed.
  const isUsed = () => {
    const at = document.activeElement;
    const writes = at && main.contains(at) && at.matches("input, select, textarea, summary, button");
    const marks = String(getSelection()) !== "";
    return writes || marks;
  };

  const refresh = async () => {
    if (!isOn || isBusy || document.hidden || isUsed()) return;
    isBusy = true;
    try {
      const reply = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "error" });
      if (!reply.ok) return;
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = page.querySelector("main");
      if (!fresh || !isOn || isUsed()) return;
      const open = new Set([...main.querySelectorAll("details[open][id]")].map((one) => one.id));
      fresh.querySelectorAll("details[id]").forEach((one) => { one.open = open.has(one.id); });
      const focused = main.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      main.replaceChildren(...fresh.childNodes);
      if (focused) main.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    } catch {
      // It is tried again.
    } finally {
      isBusy = false;
    }
  };

  button.addEventListener("click", () => {
    isOn = !isOn;
    sessionStorage.setItem("live", isOn ? "on" : "off");
    show();
    refresh();
  });
  show();
  setInterval(refresh, every);
})();
