"""The one error the core raises about what a person wrote."""


class ConfigError(ValueError):
    """A setting is wrong; the message names the flag or field, and the hint what to write instead."""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
