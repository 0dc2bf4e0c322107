// A command for a terminal, to copy.

import { useState } from "preact/hooks";

export function Command({ what, command }: { what: string; command: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    // A page that did not come over a secure channel may not write to the clipboard.
    if (!navigator.clipboard) return;
    await navigator.clipboard.writeText(command);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 2000);
  };
  return (
    <li>
      <span class="command-what">{what}</span>
      <span class="command">
        <code tabIndex={0}>{command}</code>
        <button onClick={copy} aria-label={`Copy: ${what}`}>
          {copied ? "copied" : "copy"}
        </button>
      </span>
    </li>
  );
}
