// The text of `specd: Open a Sample`, for the first minute. It is what the bundled model can do: a rename.

import * as vscode from "vscode";

const SAMPLE = `class Grid:
    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height

    def area(self) -> int:
        return self.width * self.height


def square(side: int) -> Grid:
    return Grid(side, side)


def total_area(grids: list[Grid]) -> int:
    return sum(grid.area() for grid in grids)


# Run "specd: Rewrite with LLM..." and ask: rename Grid to Mesh
`;

/** All of it is selected. It stands beside what is no text, such as the walkthrough, so that both can be seen. */
export async function openSample(): Promise<void> {
    const document = await vscode.workspace.openTextDocument({ language: "python", content: SAMPLE });
    const isBeside = vscode.window.activeTextEditor === undefined && vscode.window.tabGroups.activeTabGroup.tabs.length > 0;
    await vscode.window.showTextDocument(document, {
        viewColumn: isBeside ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active,
        selection: new vscode.Range(0, 0, document.lineCount, 0),
    });
}
