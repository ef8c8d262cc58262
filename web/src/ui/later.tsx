import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { Failed, Loading } from "./states";

/** Part of the page's script that is loaded when it is first needed. */
export interface Part<Props> {
  component: ComponentType<Props> | undefined;
  /** At most once, unless that failed. */
  load: () => Promise<void>;
}

export function partOf<Props>(load: () => Promise<{ default: ComponentType<Props> }>): Part<Props> {
  let coming: Promise<void> | undefined;
  const part: Part<Props> = {
    component: undefined,
    load: () => {
      coming ??= load().then(
        (found) => {
          part.component = found.default;
        },
        (error: Error) => {
          coming = undefined;
          throw error;
        },
      );
      return coming;
    },
  };
  return part;
}

/** React's own `lazy` holds back what it waited for for a third of a second, lest places flicker one by one: here there
 * is one place. */
export function Later<Props extends object>({ part, props }: { part: Part<Props>; props: Props }): ReactNode {
  const [state, setState] = useState<{ error?: Error }>({});
  const Component = part.component;
  useEffect(() => {
    if (part.component || state.error) return;
    part.load().then(
      () => setState({}),
      (error: Error) => setState({ error }),
    );
  }, [part, state]);
  if (Component) return <Component {...props} />;
  if (state.error) return <Failed error={state.error} what="this page" retry={() => setState({})} />;
  return <Loading what="this page" />;
}
