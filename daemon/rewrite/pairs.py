def read_pairs(instruction: str) -> list[tuple[str, str]]:
    return []
