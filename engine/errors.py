"""The engine's errors. Each message is for the user: what happened, and what to do next."""


class EngineError(Exception):
    """Any failure of the engine; the engine stays usable and every cache is at its last committed length."""


class ModelError(EngineError):
    """A model folder cannot be loaded: missing or broken files, or an architecture that is not supported."""


class ContextOverflow(EngineError):
    """The prompt, or the prompt and what must follow it, does not fit the model's context or the page pool."""


class OutOfMemory(EngineError):
    """The device has no room for what was asked."""


class NonFiniteLogits(EngineError):
    """The model produced NaN or infinite logits: broken weights, or an overflow in a 16-bit type."""
