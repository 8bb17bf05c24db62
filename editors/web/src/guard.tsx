// An error boundary: if a part of the page cannot be rendered, the rest stays.
import { Component, type ComponentChildren } from "preact";

interface Props {
  of?: unknown; // the data of the part; when it changes, rendering is tried again
  instead: ComponentChildren;
  children: ComponentChildren;
}

interface State {
  failed: boolean;
  of?: unknown;
}

export class Guard extends Component<Props, State> {
  override state: State = { failed: false };

  static override getDerivedStateFromError(): Partial<State> {
    return { failed: true };
  }

  static override getDerivedStateFromProps(props: Props, state: State): Partial<State> | null {
    return props.of === state.of ? null : { failed: false, of: props.of };
  }

  override render(): ComponentChildren {
    return this.state.failed ? this.props.instead : this.props.children;
  }
}

/** Stands for a part of the page. */
export function Broken({ what }: { what: string }): ComponentChildren {
  return (
    <p class="bad" role="alert">
      {what} cannot be shown, because eca sent something unexpected. Reload the page, or restart eca.
    </p>
  );
}
