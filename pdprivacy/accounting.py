"""The public names of `pdprivacy.core.accounting`."""

from pdprivacy.core import accounting as _home
from pdprivacy.core.accounting import *  # noqa: F403
from pdprivacy.core.accounting import __all__ as __all__

__doc__ = _home.__doc__
