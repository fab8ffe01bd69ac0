"""A part of the package whose dependency is not installed."""

import a_module_that_nobody_has  # type: ignore[import-not-found]  # noqa: F401
