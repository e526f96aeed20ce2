// Asking the server. Addresses are relative, so that the page works behind any prefix.

const TOKEN = "token";

/** An answer that says no; `message` is the server's own text. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Keep the token for this tab. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/** Ask; resolves to the response. Rejects with Refused, or with a TypeError when no server answers. */
export async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(`api/v1/${path}`, { ...options, headers, cache: "no-store" });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    message = JSON.parse(text).error;
  } catch {
    // A proxy's own words.
  }
  throw new Refused(response.status, message || response.statusText);
}

/** Ask for JSON. Rejects as `ask`. */
export async function askJson(path, options) {
  return (await ask(path, options)).json();
}

/** The path of a target below `targets/`, each part escaped. */
export function targetPath({ namespace, name }, rest = "") {
  return `targets/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}${rest}`;
}
