import { Component, type ReactNode } from "react";
import { Empty } from "./states";

/** A page whose script failed says so, and the rest of the view goes on. */
export class Boundary extends Component<{ path: string; children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override componentDidUpdate(before: { path: string }): void {
    if (before.path !== this.props.path && this.state.error) this.setState({ error: null });
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children;
    return (
      <Empty title="This page failed">
        <p>
          Its script met what it did not expect. <a href={window.location.href}>Load it again</a>, or go{" "}
          <a href="/">to the overview</a>.
        </p>
      </Empty>
    );
  }
}
