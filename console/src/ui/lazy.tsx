import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Waiting } from "./parts";

/** A view whose code is loaded when it is first shown. */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => JSX.Element {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props) {
    const [, setLoaded] = useState(loaded !== undefined);
    const [isGone, setGone] = useState(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (view) => {
          loaded = view;
          setLoaded(true);
        },
        () => setGone(true),
      );
    }, []);
    // After an update of Minute8 the page's own version is no longer there.
    if (isGone) return <NotLoaded />;
    const View = loaded;
    return View ? <View {...props} /> : <Waiting lines={8} />;
  };
}

function NotLoaded(): JSX.Element {
  return (
    <div class="notice late" role="alert">
      This part of the console could not be loaded. Minute8 may have been updated, or the network is down.{" "}
      <button type="button" onClick={() => location.reload()}>
        Load the page again
      </button>
    </div>
  );
}
