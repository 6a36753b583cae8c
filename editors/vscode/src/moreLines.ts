// An instruction of several lines, in a small panel beside the text. Ctrl+Enter (or Cmd+Enter) sends it, Escape leaves.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

/** undefined: the user has closed the panel. */
export function askForLines(where: string, text: string): Promise<string | undefined> {
    const panel = vscode.window.createWebviewPanel(
        "specd.instruction",
        "specd: instruction",
        { viewColumn: vscode.ViewColumn.Beside },
        { enableScripts: true, localResourceRoots: [] },
    );
    panel.webview.html = page(where, text, randomBytes(16).toString("hex"));
    return new Promise((resolve) => {
        panel.webview.onDidReceiveMessage((message: unknown) => {
            resolve(typeof message === "string" && message.trim() ? message : undefined);
            panel.dispose();
        });
        panel.onDidDispose(() => resolve(undefined));
    });
}

function page(where: string, text: string, nonce: string): string {
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'">
<style nonce="${nonce}">
  body { padding: 12px; }
  label { display: block; margin-bottom: 8px; }
  textarea { box-sizing: border-box; width: 100%; height: 40vh; padding: 8px; resize: vertical;
    font-family: var(--vscode-editor-font-family); font-size: var(--vscode-editor-font-size);
    color: var(--vscode-input-foreground); background: var(--vscode-input-background);
    border: 1px solid var(--vscode-input-border, transparent); outline-color: var(--vscode-focusBorder); }
  button { margin-top: 8px; padding: 4px 14px; border: 0; cursor: pointer;
    color: var(--vscode-button-foreground); background: var(--vscode-button-background); }
</style>
</head>
<body>
<label for="text">Rewrite ${escaped(where)}. Ctrl+Enter rewrites, Escape leaves.</label>
<textarea id="text" autofocus spellcheck="false">${escaped(text)}</textarea>
<button id="send">Rewrite</button>
<script nonce="${nonce}">
  const code = acquireVsCodeApi();
  const box = document.getElementById("text");
  box.value = code.getState() ?? box.value; // a panel that was hidden is made anew
  box.addEventListener("input", () => code.setState(box.value));
  const send = () => code.postMessage(box.value);
  document.getElementById("send").addEventListener("click", send);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    if (event.key === "Escape") code.postMessage("");
  });
  box.focus();
  box.setSelectionRange(box.value.length, box.value.length);
</script>
</body>
</html>`;
}

function escaped(text: string): string {
    const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
    return text.replace(/[&<>"]/g, (character) => names[character] ?? character);
}
