"""Everything Harvestman raises.

HarvestmanError
├── UsageError          the command, seed file or configuration is wrong; names the cure (exit 2)
│   └── ConfigError     an unknown or contradictory setting
├── UrlError            a string that is not a URL we could ever fetch
├── StateError          the crawl's data directory cannot be used as it is (exit 3)
└── WorkerDied          a worker process cannot be kept alive (exit 4)

A 404, a timeout, a robots refusal is not an error: it is an outcome (`model.Answer`, `model.Status`).
"""

from __future__ import annotations


class HarvestmanError(Exception):
    """The root; `exit_code` is what the command line returns for it."""

    exit_code = 1


class UsageError(HarvestmanError):
    exit_code = 2


class ConfigError(UsageError):
    pass


class UrlError(HarvestmanError, ValueError):
    exit_code = 2


class StateError(HarvestmanError):
    exit_code = 3


class WorkerDied(HarvestmanError):
    exit_code = 4
