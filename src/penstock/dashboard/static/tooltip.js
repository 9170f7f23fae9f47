// The one tooltip: of elements with `data-tip`, under the pointer or with the focus, and of places on canvases.

const box = document.createElement("div");
box.className = "tooltip";
box.setAttribute("role", "tooltip");
box.hidden = true;

export function startTooltips() {
  document.body.append(box);
  document.addEventListener("mouseover", (event) => {
    if (event.target.tagName === "CANVAS") return;
    const owner = event.target.closest?.("[data-tip]");
    owner ? above(owner) : hide();
  });
  document.addEventListener("focusin", (event) => {
    const owner = event.target.closest?.("[data-tip]");
    if (owner && event.target.matches(":focus-visible")) above(owner);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, true);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("tip", ({ detail }) => (detail ? place(detail.text, detail.x, detail.y + 16, detail.y - 12) : hide()));
}

function above(owner) {
  const { left, width, top, bottom } = owner.getBoundingClientRect();
  place(owner.dataset.tip, left + width / 2, bottom + 8, top - 8, true);
}

function hide() {
  box.hidden = true;
}

function place(text, x, below, over, centred = false) {
  if (!text) return hide();
  if (box.textContent !== text) box.textContent = text;
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = Math.min(Math.max(8, centred ? x - width / 2 : x + 8), innerWidth - width - 8);
  const top = below + height + 8 > innerHeight ? Math.max(8, over - height) : below;
  box.style.setProperty("transform", `translate(${Math.round(left)}px, ${Math.round(top)}px)`);
}
