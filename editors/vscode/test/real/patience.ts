/** How much longer than on a machine of one's own everything may take: PATIENCE=4 make test-vscode. */
export const PATIENCE = Number(process.env["PATIENCE"] || 1);
