/**
 * Sign-in at the platform's issuer of tokens: authorization code with PKCE, as a public client. No secret is in the page.
 * https://www.rfc-editor.org/rfc/rfc7636 and docs/decisions/platform.md#0048-sign-in-at-the-issuer
 */

import { addressOfApi, parsePlace, place } from "./router";

/** What the page says of the issuer. */
export interface IssuerPages {
  authorize: string;
  token: string;
  client_id: string;
  scope: string;
}

/** What the tab keeps while the person is at the issuer. */
interface Request {
  state: string;
  nonce: string;
  verifier: string;
  /** The view that was asked for. */
  view: string;
  pages: IssuerPages;
}

const PLACE = "minute8.issuer";
const RANDOM_BYTES = 32;
const TIMEOUT_MS = 10_000;

/** Leave for the issuer's page. */
export async function goToIssuer(pages: IssuerPages): Promise<void> {
  const request: Request = { state: random(), nonce: random(), verifier: random(), view: location.hash, pages };
  sessionStorage.setItem(PLACE, JSON.stringify(request));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(request.verifier));
  const address = new URL(pages.authorize);
  const asked = {
    response_type: "code",
    client_id: pages.client_id,
    redirect_uri: returnAddress(),
    scope: pages.scope,
    state: request.state,
    nonce: request.nonce,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(asked)) address.searchParams.set(name, value);
  location.assign(address);
}

/** The tokens to sign in with, the likelier first. Takes the code out of the address. Throws why there are none. */
export async function tokensOfIssuer(): Promise<string[]> {
  const { searchParams } = new URL(location.href);
  const text = sessionStorage.getItem(PLACE);
  sessionStorage.removeItem(PLACE);
  const request = text ? (JSON.parse(text) as Request) : null;
  history.replaceState(null, "", location.pathname + (request?.view ?? ""));
  place.value = parsePlace(location.hash);
  // Somebody else's answer would sign this tab in as somebody else.
  if (request?.state !== searchParams.get("state"))
    throw new Error("This sign-in was not begun in this tab: begin again.");
  const code = searchParams.get("code");
  if (!code)
    throw new Error(`The issuer refused: ${searchParams.get("error_description") ?? searchParams.get("error")}`);
  const answer = await fetch(request.pages.token, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: returnAddress(),
      client_id: request.pages.client_id,
      code_verifier: request.verifier,
    }),
    credentials: "omit",
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const tokens = (await answer.json()) as { access_token?: unknown; id_token?: unknown; error?: unknown };
  if (!answer.ok) throw new Error(`The issuer gave no token: ${tokens.error ?? answer.status}`);
  const found = [tokens.access_token, tokens.id_token].filter(isToken);
  if (isToken(tokens.id_token) && claimsOf(tokens.id_token).nonce !== request.nonce)
    throw new Error("The issuer's token is of another sign-in: begin again.");
  if (!found.length) throw new Error("The issuer gave no signed token.");
  return found;
}

/** Where the issuer sends people back to: registered there, so always the same. */
function returnAddress(): string {
  return `${addressOfApi(location.href)}/console`;
}

function isToken(token: unknown): token is string {
  return typeof token === "string" && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token);
}

/** The claims, which only the API verifies. */
function claimsOf(token: string): Record<string, unknown> {
  const text = atob((token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/"));
  return JSON.parse(text) as Record<string, unknown>;
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
