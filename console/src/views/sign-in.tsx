import type { JSX } from "preact";
import { useState } from "preact/hooks";
import icon from "../icon.svg";
import { goToIssuer, type IssuerPages } from "../lib/issuer";
import { addressOfApi } from "../lib/router";
import { signedOutBecause, signIn } from "../lib/session";
import { Problem } from "../ui/parts";

export function SignIn(): JSX.Element {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [issuer] = useState(issuerPages);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await signIn(key.trim());
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit}>
        <h1>
          <img src={icon} alt="" width="28" height="28" /> Minute8
        </h1>
        <p class="muted">See what will run, what ran, and why not.</p>
        {signedOutBecause.value ? <p role="status">{signedOutBecause.value}</p> : null}
        {issuer ? (
          <button type="button" class="primary" onClick={() => goToIssuer(issuer).catch(setError)}>
            Sign in at {new URL(issuer.authorize).host}
          </button>
        ) : null}
        <label for="key">API key or token</label>
        <input
          id="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          autofocus
          required
          placeholder="m8_…"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <p class="hint">
          Kept in this tab until you close it. <code>minute8 keys create TENANT --role read</code> makes one.
        </p>
        <Problem error={error} />
        <button type="submit" class={issuer ? "" : "primary"} disabled={busy}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        <p class="muted small">
          The API at <code>{addressOfApi(location.href)}</code>
        </p>
      </form>
    </main>
  );
}

/** The issuer's pages, which the API wrote into this page; null if the deployment has none. */
function issuerPages(): IssuerPages | null {
  const text = document.querySelector<HTMLMetaElement>('meta[name="minute8-issuer"]')?.content;
  return text ? (JSON.parse(text) as IssuerPages) : null;
}
