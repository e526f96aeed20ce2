// Building elements, and changing them only where something changed.

/**
 * An element with attributes and children. `on…` attributes are listeners; null, undefined and false are left out.
 * Text is always text, never HTML.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Set an element's text, if it is another. What was set is remembered here: to ask the document costs more. */
export function setText(element, text) {
  if (element.shownText === text) return;
  element.shownText = text;
  element.textContent = text;
}

/** Set or remove an attribute, if it is another. */
export function setAttribute(element, name, value) {
  const shown = (element.shownAttributes ??= {});
  if (shown[name] === value) return;
  shown[name] = value;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** A colour of the theme, resolved for a canvas. */
export function colour(name) {
  const probe = h("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
