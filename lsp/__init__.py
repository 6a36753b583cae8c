"""The language server: one process per editor, over stdio, client of the daemon. Knows buffers, never models."""
