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


# Select all, run "specd: Rewrite with LLM...", and ask: rename Grid to Mesh
`;

export async function openSample(): Promise<void> {
    const document = await vscode.workspace.openTextDocument({ language: "python", content: SAMPLE });
    await vscode.window.showTextDocument(document);
}
