"""What a rewrite is: pure functions from (file text, region, model text) to safe line hunks. No model, no I/O."""
