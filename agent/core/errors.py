"""The one error the core raises about what a person wrote."""


class ConfigError(ValueError):
    """A setting is wrong; the message names the flag or field and what is expected."""
