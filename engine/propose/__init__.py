"""Proposers: each drafts in its own way, none of them can change the output."""
