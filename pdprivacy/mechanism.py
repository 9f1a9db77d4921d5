"""The public names of `pdprivacy.core.mechanisms`."""

from pdprivacy.core import mechanisms as _home
from pdprivacy.core.mechanisms import *  # noqa: F403
from pdprivacy.core.mechanisms import __all__ as __all__

__doc__ = _home.__doc__
